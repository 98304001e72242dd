//! A metadata server on loopback, and functions.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_cloud_credentials::testing::{ManualClock, Reply, Server};
use mailer_gcp_iam::{AccessToken, GcpIam, Metadata};
use std::time::{Duration, SystemTime};

const NOW: u64 = 1_700_000_000;
const MAIL: &str = "svc@p.iam.gserviceaccount.com";
const FLAVOR: &str = "Metadata-Flavor: Google\r\n";

fn given(text: &str, seconds: u32) -> Reply {
    let body = format!(r#"{{"access_token":"{text}","expires_in":{seconds},"token_type":"Bearer"}}"#);
    Reply::http(200, FLAVOR, &body)
}

fn mail() -> Reply {
    Reply::http(200, FLAVOR, MAIL)
}

fn gcp(server: &Server, clock: &ManualClock) -> GcpIam {
    let metadata = Metadata::at(&server.host()).unwrap().timeout(Duration::from_millis(300));
    GcpIam::new().metadata(metadata).clock(clock.clock())
}

async fn refusal(replies: impl IntoIterator<Item = Reply>) -> (bool, String) {
    let server = Server::start(replies).await.unwrap();
    let error = gcp(&server, &ManualClock::at(NOW)).token().await.unwrap_err();
    let said = format!("{error} {error:?}");
    assert!(!said.contains("hunter"), "a secret is shown: {said}");
    (error.is_retriable(), said)
}

#[tokio::test]
async fn the_metadata_server_is_asked_once_and_again_before_the_token_ends() {
    let server = Server::start([given("ya29.1", 3_599), mail(), given("ya29.2", 3_599), mail()]).await.unwrap();
    let clock = ManualClock::at(NOW);
    let gcp = gcp(&server, &clock);
    let first = gcp.access_token().await.unwrap();
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    assert_eq!((first.reveal(), first.principal()), ("ya29.1", MAIL));
    assert_eq!((first.issued(), first.expires()), (at(NOW), at(NOW + 3_599)));
    clock.advance(Duration::from_secs(3_358));
    let token = gcp.clone().token().await.unwrap();
    assert_eq!(token.lifetime, Duration::from_secs(241));
    clock.advance(Duration::from_secs(1));
    assert_eq!(gcp.access_token().await.unwrap().reveal(), "ya29.2");
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    for (request, what) in requests.iter().zip(["token", "email", "token", "email"]) {
        let line = format!("GET /computeMetadata/v1/instance/service-accounts/default/{what} HTTP/1.1\r\n");
        assert!(request.starts_with(&line) && request.contains("metadata-flavor: Google\r\n"), "{request}");
    }
}

#[tokio::test]
async fn while_the_server_is_away_the_old_token_serves_until_it_ends() {
    let server = Server::start([given("ya29.1", 3_600), mail(), Reply::http(503, FLAVOR, "")]).await.unwrap();
    let clock = ManualClock::at(NOW);
    let gcp = gcp(&server, &clock);
    gcp.token().await.unwrap();
    clock.advance(Duration::from_secs(3_500));
    assert_eq!(gcp.token().await.unwrap().lifetime, Duration::from_secs(100));
    assert_eq!(server.requests().len(), 3, "it has been asked again");
    clock.advance(Duration::from_secs(100));
    assert!(gcp.token().await.unwrap_err().is_retriable());
}

#[tokio::test]
async fn a_refusal_says_what_to_do() {
    for status in [401, 403, 404] {
        let (is_retriable, said) = refusal([Reply::http(status, FLAVOR, "hunter2")]).await;
        assert!(
            !is_retriable && said.contains("attach a service account") && said.contains(&status.to_string()),
            "{said}"
        );
    }
    for status in [429, 500, 503] {
        let (is_retriable, said) = refusal([Reply::http(status, "", "hunter2")]).await;
        assert!(is_retriable && said.contains(&status.to_string()), "{said}");
    }
    let (is_retriable, said) = refusal([Reply::http(302, FLAVOR, "")]).await;
    assert!(!is_retriable && said.contains("302; check GCE_METADATA_HOST"), "{said}");
}

#[tokio::test]
async fn rubbish_is_named() {
    let (is_retriable, said) = refusal([Reply::http(200, "", r#"{"access_token":"hunter2","expires_in":9}"#)]).await;
    assert!(!is_retriable && said.contains("not a metadata server"), "{said}");
    for body in
        ["", "<html>hunter2", "{}", r#"{"access_token":"hunter2"}"#, r#"{"access_token":"hunter2","expires_in":-1}"#]
    {
        let (is_retriable, said) = refusal([Reply::http(200, FLAVOR, body)]).await;
        assert!(!is_retriable && said.contains("not JSON with access_token and expires_in"), "{said}");
    }
    let (is_retriable, said) = refusal([given("hunter2", 3_600), Reply::http(200, FLAVOR, "default")]).await;
    assert!(!is_retriable && said.contains("\"default\" is not the mail address"), "{said}");
    let (is_retriable, said) = refusal([given("hunter2", 0), mail()]).await;
    assert!(is_retriable && said.contains("ended already"), "{said}");
}

#[tokio::test]
async fn silence_is_not_waited_for() {
    for replies in [vec![Reply::Silence], vec![given("hunter2", 3_600), Reply::Silence]] {
        let (is_retriable, said) = refusal(replies).await;
        assert!(is_retriable && said.contains("no answer from") && said.contains("GCE_METADATA_HOST"), "{said}");
    }
}

#[tokio::test]
async fn a_function_brings_what_the_metadata_server_would() {
    let issued = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
    let access = AccessToken::new("ya29.abc", MAIL, issued, Duration::from_secs(3_600));
    let function = move || std::future::ready(Ok(access.clone()));
    let gcp = GcpIam::new().function(function).clock(ManualClock::at(NOW).clock());
    let token = gcp.token().await.unwrap();
    assert_eq!((token.expires, token.lifetime), (issued + Duration::from_secs(3_600), Duration::from_secs(3_600)));
    assert_eq!(token.text.split('.').count(), 3);
    let failing = GcpIam::new().function(|| async { Err("the vault is sealed".into()) });
    let error = failing.token().await.unwrap_err();
    assert!(error.is_retriable() && error.to_string().contains("the vault is sealed"), "{error}");
    assert!(format!("{failing:?}").contains("a function"));
}
