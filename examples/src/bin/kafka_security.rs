//! The ways to connect to a Kafka that is not open to everyone. It is compiled and shows what it made; there is no broker.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_kafka::{KafkaSource, OidcClientCredentials, Pem, Sasl, Security, Token};
use mailer_runtime::Result;
use std::time::Duration;

fn secret(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Where tokens come from that no OIDC provider gives: a file that something else keeps fresh, a metadata service.
async fn token_of_this_machine() -> Result<Token> {
    Ok(Token::new(secret("KAFKA_TOKEN"), Duration::from_secs(300)))
}

fn main() {
    // ANCHOR: scram
    let security = Security::tls() // brokers are judged by the authorities of this system
        .sasl(Sasl::scram_sha_512("mailer", secret("KAFKA_PASSWORD")));
    let orders = KafkaSource::new("broker:9093", "orders").security(security).string();
    // ANCHOR_END: scram
    // ANCHOR: mutual
    let mutual = Security::tls()
        .ca_file("/etc/kafka/ca.pem") // and by this one only
        .client_certificate(Pem::file("/etc/kafka/mailer.pem"), Pem::file("/etc/kafka/mailer.key"));
    // ANCHOR_END: mutual
    // ANCHOR: oauth
    let credentials = OidcClientCredentials::new("https://id.example.com/token", "mailer", secret("CLIENT_SECRET"));
    let provider = Security::tls().sasl(Sasl::oidc(credentials.scope("kafka")));
    let function = Security::tls().sasl(Sasl::oauth_bearer(token_of_this_machine));
    // ANCHOR_END: oauth
    // ANCHOR: options
    let same = KafkaSource::new("broker:9093", "orders")
        .option("security.protocol", "SASL_SSL")
        .option("sasl.mechanism", "SCRAM-SHA-512")
        .option("sasl.username", "mailer")
        .option("sasl.password", secret("KAFKA_PASSWORD"))
        .string();
    // ANCHOR_END: options
    // None of this shows a secret.
    println!("{orders:?}\n{mutual:?}\n{provider:?}\n{function:?}\n{same:?}");
}
