//! The token itself: the URL of a request that is never made, signed. Pure.

use crate::keys::AwsKeys;
use crate::token::MskToken;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use mailer_cloud_credentials::{Result, TokenError};
use std::borrow::Cow;
use std::time::{Duration, SystemTime};

/// MSK takes no token that is good for longer.
const LIFETIME: Duration = Duration::from_mins(15);
const SERVICE: &str = "kafka-cluster";
/// Tells AWS who signs; no part of what is signed.
const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

/// Good for 15 minutes, or until the keys end.
pub(crate) fn token(region: &str, keys: &AwsKeys, now: SystemTime) -> Result<MskToken> {
    let base = format!("https://kafka.{region}.amazonaws.com/?");
    let url = format!("{base}Action=kafka-cluster%3AConnect");
    let signed = signature(&url, region, keys, now)?;
    let mut query = form_urlencoded::Serializer::for_suffix(url, base.len());
    query.extend_pairs(signed).append_pair("User-Agent", USER_AGENT);
    let expires = keys.expires.map_or(now + LIFETIME, |end| end.min(now + LIFETIME));
    let lifetime = expires.duration_since(now).unwrap_or_default();
    Ok(MskToken { text: BASE64.encode(query.finish()), expires, lifetime })
}

type Params = Vec<(&'static str, Cow<'static, str>)>;

/// The parameters that make a signed URL of `url`.
fn signature(url: &str, region: &str, keys: &AwsKeys, now: SystemTime) -> Result<Params> {
    let mut settings = SigningSettings::default();
    settings.signature_location = SignatureLocation::QueryParams;
    settings.expires_in = Some(LIFETIME);
    let session = keys.session_token.as_ref().map(|token| token.reveal().to_owned());
    let identity =
        Credentials::new(&keys.access_key_id, keys.secret_access_key.reveal(), session, None, env!("CARGO_PKG_NAME"))
            .into();
    let params = SigningParams::builder().identity(&identity).region(region).name(SERVICE).time(now).settings(settings);
    let params = params.build().map_err(|error| not_signed(&error))?.into();
    let request = SignableRequest::new("GET", url, std::iter::empty(), SignableBody::Bytes(&[]));
    let signed = sign(request.map_err(|error| not_signed(&error))?, &params).map_err(|error| not_signed(&error))?;
    Ok(signed.into_parts().0.into_parts().1)
}

fn not_signed(error: &dyn std::error::Error) -> TokenError {
    TokenError::denied(format!("the request to MSK cannot be signed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AWS's example of a secret key.
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn url(token: &MskToken) -> String {
        String::from_utf8(BASE64.decode(&token.text).unwrap()).unwrap()
    }

    /// Recorded from AWS's own signer for Python (aws-msk-iam-sasl-signer-python 1.0.2 on botocore 1.44.8) with its clock
    /// at 2026-01-02 03:04:05 UTC. Only the name of the signer differs, which is not signed.
    #[test]
    fn it_is_what_the_signer_of_aws_makes_of_the_same_keys() {
        let token = token("us-west-2", &AwsKeys::new("AKIDEXAMPLE", SECRET), at(1_767_323_045)).unwrap();
        let recorded = "https://kafka.us-west-2.amazonaws.com/?Action=kafka-cluster%3AConnect\
            &X-Amz-Algorithm=AWS4-HMAC-SHA256\
            &X-Amz-Credential=AKIDEXAMPLE%2F20260102%2Fus-west-2%2Fkafka-cluster%2Faws4_request\
            &X-Amz-Date=20260102T030405Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host\
            &X-Amz-Signature=a849e3047a394346a9d022cdc5878ecc38b1b9119a6d3b4d033d6e881848e02a";
        assert_eq!(url(&token), format!("{recorded}&User-Agent=mailer-aws-msk-iam%2F{}", env!("CARGO_PKG_VERSION")));
        assert_eq!((token.expires, token.lifetime), (at(1_767_323_945), LIFETIME));
        assert!(!token.text.contains(['=', '+', '/']), "base64url without padding");
    }

    /// Recorded as above, at 2026-12-31 23:59:59 UTC: temporary keys, whose token is a part of what is signed.
    #[test]
    fn a_session_token_is_signed_too() {
        let keys = AwsKeys::new("ASIAEXAMPLE", SECRET).session_token("FwoGZXIvYXdzEBYaDExample+/token==");
        let token = token("eu-central-1", &keys, at(1_798_761_599)).unwrap();
        let recorded = "https://kafka.eu-central-1.amazonaws.com/?Action=kafka-cluster%3AConnect\
            &X-Amz-Algorithm=AWS4-HMAC-SHA256\
            &X-Amz-Credential=ASIAEXAMPLE%2F20261231%2Feu-central-1%2Fkafka-cluster%2Faws4_request\
            &X-Amz-Date=20261231T235959Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host\
            &X-Amz-Security-Token=FwoGZXIvYXdzEBYaDExample%2B%2Ftoken%3D%3D\
            &X-Amz-Signature=77c9a41c84475b1bb5c4ca6cea6da7d9a99195dbb210488cfe2aca06c1ece867";
        assert_eq!(sorted(&url(&token)), sorted(recorded));
        assert_eq!(token.expires, at(1_798_762_499));
    }

    /// The order of parameters is free.
    fn sorted(url: &str) -> Vec<&str> {
        let mut parts: Vec<&str> = url.split(['?', '&']).filter(|part| !part.starts_with("User-Agent=")).collect();
        parts.sort_unstable();
        parts
    }

    #[test]
    fn it_does_not_outlive_its_keys() {
        let keys = AwsKeys::new("ASIAEXAMPLE", SECRET).expires(at(1_000_060));
        let token = token("us-west-2", &keys, at(1_000_000)).unwrap();
        assert_eq!((token.expires, token.lifetime), (at(1_000_060), Duration::from_mins(1)));
    }

    #[test]
    fn it_is_not_shown() {
        let token = token("us-west-2", &AwsKeys::new("AKIDEXAMPLE", SECRET), at(0)).unwrap();
        assert!(!format!("{token:?}").contains(&token.text));
    }
}
