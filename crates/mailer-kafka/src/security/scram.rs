//! SCRAM-SHA-256 and SCRAM-SHA-512: a proof of the password, and a proof of the broker (RFC 5802, RFC 7677).
//!
//! The cryptography is ring's, which TLS brings anyway. No channel binding (`n,,`): Kafka offers none.

use super::exchange::Step;
use super::secret::Secret;
use crate::client::{Cause, Failure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ring::rand::SecureRandom;
use ring::{digest, hmac, pbkdf2, rand};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

/// Which hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    pub(super) fn mechanism(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM-SHA-256",
            Self::Sha512 => "SCRAM-SHA-512",
        }
    }

    fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }

    fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Self::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Self::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        }
    }

    fn sign(self, key: &[u8], text: &[u8]) -> hmac::Tag {
        hmac::sign(&hmac::Key::new(self.hmac(), key), text)
    }

    fn digest(self, bytes: &[u8]) -> digest::Digest {
        digest::digest(self.hmac().digest_algorithm(), bytes)
    }
}

/// Fewer make a stolen proof cheap to guess from: Kafka and the RFCs refuse them as well. More would let whoever answers
/// keep this processor busy before it has proved anything.
const ITERATIONS: RangeInclusive<u32> = 4_096..=1_000_000;
/// Random bytes in our nonce.
const NONCE: usize = 24;
/// The header of a client without channel binding, and its base64 as the proof repeats it.
const HEADER: &str = "n,,";
const BINDING: &str = "c=biws";

/// One exchange.
#[derive(Debug)]
pub(super) struct Scram {
    hash: Hash,
    password: Secret,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The first message is sent; the broker's salt and iterations are next.
    AwaitChallenge { nonce: String, first: String },
    /// The proof is sent; the broker's own proof is next.
    AwaitSignature { server_key: Secret64, signed: String },
    /// Nothing may come any more.
    Finished,
}

/// Key material: not shown.
struct Secret64(Vec<u8>);

impl std::fmt::Debug for Secret64 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

impl Scram {
    /// `nonce` is random unless a test says it.
    pub(super) fn start(
        hash: Hash,
        user: &str,
        password: Secret,
        nonce: Option<&str>,
    ) -> Result<(Self, Bytes), Failure> {
        let nonce = nonce.map_or_else(random_nonce, |nonce| Ok(nonce.to_owned()))?;
        let first = format!("n={},r={nonce}", user.replace('=', "=3D").replace(',', "=2C"));
        let bytes = format!("{HEADER}{first}").into();
        Ok((Self { hash, password, state: State::AwaitChallenge { nonce, first } }, bytes))
    }

    pub(super) fn step(&mut self, answer: &[u8]) -> Result<Step, Failure> {
        let answer = std::str::from_utf8(answer).map_err(|_| broken("an answer that is no text"))?;
        match std::mem::replace(&mut self.state, State::Finished) {
            State::AwaitChallenge { nonce, first } => self.prove(&nonce, &first, answer),
            State::AwaitSignature { server_key, signed } => self.verify(&server_key, &signed, answer),
            State::Finished => Err(broken("more than the exchange has")),
        }
    }

    /// What others say, without the password.
    pub(super) fn scrub(&self, said: &str) -> String {
        self.password.scrub(said)
    }

    fn prove(&mut self, nonce: &str, first: &str, answer: &str) -> Result<Step, Failure> {
        let challenge = Challenge::parse(answer, nonce)?;
        let salted = self.salted(&challenge);
        let client_key = self.hash.sign(&salted, b"Client Key");
        let last = format!("{BINDING},r={}", challenge.nonce);
        let signed = format!("{first},{answer},{last}");
        let signature = self.hash.sign(self.hash.digest(client_key.as_ref()).as_ref(), signed.as_bytes());
        let proof: Vec<u8> = client_key.as_ref().iter().zip(signature.as_ref()).map(|(a, b)| a ^ b).collect();
        let server_key = Secret64(self.hash.sign(&salted, b"Server Key").as_ref().to_vec());
        self.state = State::AwaitSignature { server_key, signed };
        Ok(Step::Send(format!("{last},p={}", STANDARD.encode(proof)).into()))
    }

    fn salted(&self, challenge: &Challenge<'_>) -> Vec<u8> {
        let mut salted = vec![0; self.hash.hmac().digest_algorithm().output_len()];
        let password = self.password.reveal().as_bytes();
        pbkdf2::derive(self.hash.pbkdf2(), challenge.iterations, &challenge.salt, password, &mut salted);
        salted
    }

    fn verify(&self, server_key: &Secret64, signed: &str, answer: &str) -> Result<Step, Failure> {
        let field = answer.split(',').next().unwrap_or_default();
        if let Some(error) = field.strip_prefix("e=") {
            return Err(Failure::new(
                Cause::Denied,
                format!("the broker refused the proof ({error}); check the password"),
            ));
        }
        let signature = field.strip_prefix("v=").and_then(|text| STANDARD.decode(text).ok());
        let signature = signature.ok_or_else(|| broken("no signature"))?;
        hmac::verify(&hmac::Key::new(self.hash.hmac(), &server_key.0), signed.as_bytes(), &signature)
            .map_err(|_| impostor())?;
        Ok(Step::Done)
    }
}

/// What the broker asks to be proved.
struct Challenge<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: NonZeroU32,
}

impl<'a> Challenge<'a> {
    /// `r=…,s=…,i=…` and extensions, which may be ignored; one before them (`m=`) may not.
    fn parse(answer: &'a str, ours: &str) -> Result<Self, Failure> {
        if let Some(error) = answer.strip_prefix("e=") {
            return Err(Failure::new(Cause::Denied, format!("the broker refused ({error}); check user and password")));
        }
        let mut fields = answer.split(',');
        let mut field = |name: &str| {
            let value = fields.next().and_then(|field| field.strip_prefix(name));
            value.ok_or_else(|| broken(&format!("no {name} where it belongs")))
        };
        let (nonce, salt, iterations) = (field("r=")?, field("s=")?, field("i=")?);
        if !nonce.starts_with(ours) || nonce.len() == ours.len() {
            return Err(broken("a nonce that does not continue ours"));
        }
        let salt = STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty());
        let salt = salt.ok_or_else(|| broken("a salt that is no base64"))?;
        Ok(Self { nonce, salt, iterations: iterations_in_bounds(iterations)? })
    }
}

fn iterations_in_bounds(text: &str) -> Result<NonZeroU32, Failure> {
    let bounded = text.parse().ok().filter(|count| ITERATIONS.contains(count)).and_then(NonZeroU32::new);
    bounded.ok_or_else(|| {
        let (least, most) = (ITERATIONS.start(), ITERATIONS.end());
        let message = format!(
            "the broker asks for {text:.12} iterations; between {least} and {most} are taken: store the user's password \
             again with `kafka-configs --add-config 'SCRAM-SHA-…=[iterations={least},…]'`"
        );
        Failure::new(Cause::Denied, message)
    })
}

fn random_nonce() -> Result<String, Failure> {
    let mut bytes = [0; NONCE];
    let filled = rand::SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Failure::new(Cause::Other, "this system gives no random bytes"))?;
    Ok(STANDARD.encode(bytes))
}

fn broken(what: &str) -> Failure {
    Failure::new(Cause::Denied, format!("the broker's answer is no SCRAM: {what}; is the peer a Kafka broker?"))
}

fn impostor() -> Failure {
    Failure::new(
        Cause::Denied,
        "the broker did not prove that it knows the password: whoever answers is not the broker; use TLS and check the \
         address",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hash, user, password, nonce, first message, challenge, proof, signature.
    type Vector =
        (Hash, &'static str, &'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

    const VECTORS: [Vector; 2] = [
        // RFC 7677, section 3.
        (
            Hash::Sha256,
            "user",
            "pencil",
            "rOprNGfwEbeRWgbNEkqO",
            "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        ),
        // No RFC has one with the longer hash: computed with Python's hashlib. The name needs escapes.
        (
            Hash::Sha512,
            "us=er,",
            "pässword",
            "fyko+d2lbbFgONRv9qkxdawL",
            "n,,n=us=3Der=2C,r=fyko+d2lbbFgONRv9qkxdawL",
            "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=8192",
            "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=IglK0wegCRpFutozv+b3IRpog7SKQ1By62ATpyHG62xgMWe4VpnLdjPd\
             YMmTUMUakUr0EK/nHGZusA/1SjAnBA==",
            "v=Soxy//lP45AagcsrAuBcaR8Eg+wLz31+4w6+AEdgZC7p3hfT4NeN0aikp2DyQYGKADNtt26qmTQpJoVmd7GAGA==",
        ),
    ];

    fn started(vector: &Vector) -> (Scram, Bytes) {
        Scram::start(vector.0, vector.1, Secret::new(vector.2), Some(vector.3)).unwrap()
    }

    #[test]
    fn known_exchanges_come_out_as_known() {
        for vector in &VECTORS {
            let (mut scram, first) = started(vector);
            assert_eq!(first, vector.4);
            assert_eq!(scram.step(vector.5.as_bytes()).unwrap(), Step::Send(vector.6.into()));
            assert!(!format!("{scram:?}").contains(vector.2));
            assert_eq!(scram.step(vector.7.as_bytes()).unwrap(), Step::Done);
            assert!(scram.step(b"v=again").unwrap_err().message.contains("more than"));
        }
    }

    #[test]
    fn a_broker_that_does_not_know_the_password_is_found_out() {
        let (mut scram, _) = started(&VECTORS[0]);
        scram.step(VECTORS[0].5.as_bytes()).unwrap();
        let forged = VECTORS[0].7.replace('6', "7");
        assert!(scram.step(forged.as_bytes()).unwrap_err().message.contains("not the broker"));
    }

    #[test]
    fn challenges_that_are_none_are_refused_with_the_reason() {
        let salt = "s=W22ZaJ0SNY7soEsUEjb6gQ==";
        let r = "r=rOprNGfwEbeRWgbNEkqO";
        for (challenge, part) in [
            (format!("{r}x,{salt},i=4095"), "4095 iterations"),
            (format!("{r}x,{salt},i=1000001"), "1000001 iterations"),
            (format!("{r}x,{salt},i=-1"), "iterations"),
            (format!("{r},{salt},i=4096"), "continue ours"),
            (format!("r=other,{salt},i=4096"), "continue ours"),
            (format!("{r}x,s=,i=4096"), "salt"),
            (format!("{r}x,s=*,i=4096"), "salt"),
            (format!("m=x,{r}x,{salt},i=4096"), "no r="),
            (format!("{r}x,i=4096"), "no s="),
            (format!("{r}x,{salt}"), "no i="),
            ("e=unknown-user".to_owned(), "unknown-user"),
            (String::new(), "no r="),
        ] {
            let failure = started(&VECTORS[0]).0.step(challenge.as_bytes()).unwrap_err();
            assert!(failure.message.contains(part) && failure.cause == Cause::Denied, "{challenge}: {failure}");
        }
        assert!(started(&VECTORS[0]).0.step(&[0xff]).unwrap_err().message.contains("no text"));
    }

    #[test]
    fn last_messages_that_are_no_signature_are_refused() {
        for (last, part) in [("e=invalid-proof", "invalid-proof"), ("v=*", "no signature"), ("", "no signature")] {
            let (mut scram, _) = started(&VECTORS[0]);
            scram.step(VECTORS[0].5.as_bytes()).unwrap();
            let failure = scram.step(last.as_bytes()).unwrap_err();
            assert!(failure.message.contains(part), "{failure}");
        }
    }

    #[test]
    fn nonces_are_long_and_differ() {
        let (one, other) = (random_nonce().unwrap(), random_nonce().unwrap());
        assert!(one != other && one.len() == 32 && !one.contains(','));
    }
}
