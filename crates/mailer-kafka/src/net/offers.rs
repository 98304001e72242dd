//! What a broker offers: versions of requests, and features of the cluster. Pure.

use super::Api;
use crate::client::{Cause, Failure};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::ApiVersionsResponse;
use std::collections::HashMap;

/// The answer to ApiVersions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    versions: HashMap<i16, (i16, i16)>,
    /// Finalized `transaction.version`; 0 where the cluster knows none.
    pub(crate) transaction_version: i16,
}

impl Offers {
    /// Offers of these versions (key, lowest, highest) and of this finalized `transaction.version`.
    #[cfg(test)]
    pub(super) fn with(versions: &[(i16, i16, i16)], transaction_version: i16) -> Self {
        let versions = versions.iter().map(|(key, min, max)| (*key, (*min, *max))).collect();
        Self { versions, transaction_version }
    }

    pub(super) fn of(response: &ApiVersionsResponse) -> Self {
        let versions = response.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version)));
        let finalized = response.finalized_features.iter().find(|feature| &*feature.name == "transaction.version");
        Self {
            versions: versions.collect(),
            transaction_version: finalized.map_or(0, |feature| feature.max_version_level),
        }
    }

    /// The highest version that both sides know; `peer` is named in the error.
    pub(crate) fn version<R: Api>(&self, peer: &str) -> Result<i16, Failure> {
        let (low, high) = R::RANGE.into_inner();
        let Some((min, max)) = self.versions.get(&R::KEY).copied() else {
            return Err(Failure::new(Cause::Unsupported, format!("{peer} does not know {}", R::NAME)));
        };
        let version = high.min(max);
        if version >= low.max(min) {
            return Ok(version);
        }
        let message = format!(
            "{peer} offers {} versions {min} to {max}, this program needs one of {low} to {high}: use a newer broker or program",
            R::NAME
        );
        Err(Failure::new(Cause::Unsupported, message))
    }

    /// The highest version of a request that the broker knows; `None` where it does not know the request.
    pub(crate) fn highest<R: Api>(&self) -> Option<i16> {
        self.versions.get(&R::KEY).map(|(_, max)| *max)
    }
}

/// Whether an answer to ApiVersions says that its version is not known. It is written in version 0 then, whatever was asked:
/// the number, and the error code first.
pub(super) fn is_unsupported(answer: &[u8]) -> bool {
    answer.get(4..6) == Some(&ResponseError::UnsupportedVersion.code().to_be_bytes()[..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::api_versions_response::FinalizedFeatureKey;
    use kafka_protocol::messages::{CreateTopicsRequest, FetchRequest, MetadataRequest};
    use kafka_protocol::protocol::StrBytes;

    fn offers(of: &[(i16, i16, i16)]) -> Offers {
        Offers::with(of, 0)
    }

    #[test]
    fn the_highest_version_of_both_is_taken() {
        for (min, max, taken) in [(0, 7, 7), (0, 99, 13), (4, 4, 4), (13, 15, 13)] {
            assert_eq!(offers(&[(3, min, max)]).version::<MetadataRequest>("b").unwrap(), taken);
        }
    }

    #[test]
    fn no_common_version_names_both_sides() {
        for (min, max) in [(0, 3), (17, 20)] {
            let failure = offers(&[(1, min, max)]).version::<FetchRequest>("broker 2 (b:1)").unwrap_err();
            assert_eq!(failure.cause, Cause::Unsupported);
            assert!(
                failure.message.contains(&format!("broker 2 (b:1) offers Fetch versions {min} to {max}")),
                "{failure}"
            );
            assert!(failure.message.contains("4 to 16"), "{failure}");
        }
        let failure = offers(&[]).version::<CreateTopicsRequest>("b").unwrap_err();
        assert!(failure.message.contains("does not know CreateTopics"), "{failure}");
    }

    #[test]
    fn the_finalized_transaction_version_is_read() {
        let feature = FinalizedFeatureKey::default()
            .with_name(StrBytes::from_static_str("transaction.version"))
            .with_max_version_level(2);
        let response = ApiVersionsResponse::default().with_finalized_features(vec![feature]);
        assert_eq!(Offers::of(&response).transaction_version, 2);
        assert_eq!(Offers::default().transaction_version, 0);
    }
}
