//! Every way to say who we are, on a broker that asks.

use super::support::{Cluster, Journal, Running, a_little, noting, unique};
use mailer_parallel_consumer::{DeadLetterTopic, Error, ErrorKind, ParallelConsumer, Sasl, Security, Token};
use std::sync::Arc;
use xtask::kafka::{Broker, BrokerOptions, Listener, PASSWORD, USER};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_say_who_we_are() {
    if Cluster::from_environment().await.is_none() {
        return; // no real brokers today
    }
    let broker = Broker::start(BrokerOptions::named("test-parallel-security").secured()).unwrap();
    let secured = broker.secured().unwrap();
    let cluster = Cluster::at(broker.bootstrap()).await;
    let (topic, letters) = (cluster.topic("secret", 1).await, cluster.topic("secret-dead", 1).await);
    cluster.write(&topic, 0..20, 5).await;
    let certificates = secured.certificates();
    let (chain, key) = certificates.client();
    let tls = || Security::tls().ca_file(certificates.authority());
    let token = secured.tokens().token("kafka").unwrap();
    let file = std::env::temp_dir().join(unique("token"));
    std::fs::write(&file, format!("{token}\n")).unwrap();
    let asked = Sasl::oauth_bearer(move || {
        let token = token.clone();
        async move { Ok(Token::new(token)) }
    });
    let ways = [
        (Listener::Tls, tls()),
        (Listener::MutualTls, tls().client_certificate(chain, key)),
        (Listener::SaslTls, tls().sasl(Sasl::plain(USER, PASSWORD))),
        (Listener::SaslTls, tls().sasl(asked)),
        (Listener::SaslTls, tls().sasl(Sasl::oauth_bearer_file(&file))),
        (Listener::SaslPlaintext, Security::plaintext().sasl(Sasl::scram_sha_256(USER, PASSWORD))),
        (Listener::SaslPlaintext, Security::plaintext().sasl(Sasl::scram_sha_512(USER, PASSWORD))),
    ];
    for (listener, security) in ways {
        let name = format!("{listener:?} {security:?}");
        let journal = Arc::new(Journal::default());
        let consumer = build(&secured.bootstrap(listener), security, &topic, &letters, &journal).await;
        let member = Running::ready(consumer.unwrap_or_else(|error| panic!("{name}: {error}"))).await;
        journal.until_handled(0..20).await;
        member.stop().await;
    }
    std::fs::remove_file(file).unwrap();

    let refused = [
        (Listener::SaslTls, tls().sasl(Sasl::plain(USER, "guessed"))),
        (Listener::SaslPlaintext, Security::plaintext().sasl(Sasl::scram_sha_512(USER, "guessed"))),
        (Listener::Tls, Security::tls().ca_file(certificates.other_authority())),
        (Listener::Expired, tls()),
    ];
    for (listener, security) in refused {
        let name = format!("{listener:?} {security:?}");
        let consumer = build(&secured.bootstrap(listener), security, &topic, &letters, &Arc::default()).await;
        let error = consumer.map(|_| ()).expect_err(&name);
        assert_eq!(error.kind(), ErrorKind::Refused, "{name}: {error}");
        assert!(!error.to_string().contains("guessed"), "{error}");
    }
}

async fn build(
    brokers: &str,
    security: Security,
    topic: &str,
    letters: &str,
    journal: &Arc<Journal>,
) -> Result<ParallelConsumer, Error> {
    let consumer = ParallelConsumer::builder(brokers, unique("secret")).topics([topic]).security(security);
    consumer.handler(noting("a", journal, a_little)).dead_letter(DeadLetterTopic::new(letters)).build().await
}
