//! Keys of an endpoint on loopback, as ECS and EKS have one, and of functions.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_aws_msk_iam::{AwsKeys, BoxError, Container, MskIam, MskToken, Result};
use mailer_cloud_credentials::testing::{ManualClock, Reply, Server};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// 2026-01-02 03:04:05 UTC.
const NOW: u64 = 1_767_323_045;

fn given(id: &str, ends: &str) -> Reply {
    let body = format!(
        r#"{{"AccessKeyId":"{id}","SecretAccessKey":"hunter2","Token":"hunter3","Expiration":"{ends}","RoleArn":"arn"}}"#
    );
    Reply::http(200, "Content-Type: application/json\r\n", &body)
}

fn msk(server: &Server, clock: &ManualClock) -> MskIam {
    let container = Container::new(&server.url("/v1/credentials")).unwrap().token("hunter4");
    MskIam::new("eu-central-1").unwrap().container(container.timeout(Duration::from_millis(300))).clock(clock.clock())
}

/// The access key id that has signed.
fn signer(token: &MskToken) -> String {
    use base64::Engine;
    let url = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(&token.text).unwrap();
    let url = String::from_utf8(url).unwrap();
    url.split("X-Amz-Credential=").nth(1).unwrap().split("%2F").next().unwrap().to_owned()
}

async fn refusal(reply: Reply) -> (bool, String) {
    let server = Server::start([reply]).await.unwrap();
    let error = msk(&server, &ManualClock::at(NOW)).token().await.unwrap_err();
    let said = format!("{error} {error:?}");
    assert!(!said.contains("hunter"), "a secret is shown: {said}");
    (error.is_retriable(), said)
}

#[tokio::test]
async fn keys_are_fetched_once_and_again_before_they_end() {
    let server =
        Server::start([given("ASIA1", "2026-01-02T04:04:05Z"), given("ASIA2", "2026-01-02T09:04:05Z")]).await.unwrap();
    let clock = ManualClock::at(NOW);
    let msk = msk(&server, &clock);
    assert_eq!(signer(&msk.token().await.unwrap()), "ASIA1");
    clock.advance(Duration::from_mins(55));
    let token = msk.clone().token().await.unwrap();
    assert_eq!((signer(&token).as_str(), token.lifetime), ("ASIA1", Duration::from_mins(5)), "it ends with its keys");
    clock.advance(Duration::from_mins(1));
    let token = msk.token().await.unwrap();
    assert_eq!((signer(&token).as_str(), token.lifetime), ("ASIA2", Duration::from_mins(15)));
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].starts_with("GET /v1/credentials HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].contains("authorization: hunter4\r\n"), "{}", requests[0]);
}

#[tokio::test]
async fn while_the_endpoint_is_away_the_old_keys_serve_until_they_end() {
    let server = Server::start([given("ASIA1", "2026-01-02T04:04:05Z"), Reply::http(503, "", "")]).await.unwrap();
    let clock = ManualClock::at(NOW);
    let msk = msk(&server, &clock);
    msk.token().await.unwrap();
    clock.advance(Duration::from_mins(57));
    assert_eq!(signer(&msk.token().await.unwrap()), "ASIA1");
    assert_eq!(server.requests().len(), 2, "it has been asked again");
    clock.advance(Duration::from_mins(3));
    assert!(msk.token().await.unwrap_err().is_retriable());
    server.reply(given("ASIA2", "2026-01-02T09:04:05Z"));
    assert_eq!(signer(&msk.token().await.unwrap()), "ASIA2");
}

#[tokio::test]
async fn a_refusal_says_what_to_check() {
    let (is_retriable, said) = refusal(Reply::http(403, "", r#"{"code":"AccessDenied","message":"hunter4"}"#)).await;
    assert!(!is_retriable && said.contains("403 (AccessDenied)") && said.contains("AUTHORIZATION_TOKEN"), "{said}");
    let (is_retriable, said) = refusal(Reply::http(404, "", r#"{"code":"hunter4 is not known"}"#)).await;
    assert!(!is_retriable && said.contains("404; check the URL"), "{said}");
    for status in [408, 429, 500, 503] {
        let (is_retriable, said) = refusal(Reply::http(status, "", "hunter4")).await;
        assert!(is_retriable && said.contains(&status.to_string()), "{said}");
    }
}

#[tokio::test]
async fn rubbish_is_named() {
    for body in
        ["", "<html>hunter2", "{}", r#"{"AccessKeyId":"hunter2"}"#, r#"{"AccessKeyId":7,"SecretAccessKey":"hunter2"}"#]
    {
        let (is_retriable, said) = refusal(Reply::http(200, "", body)).await;
        assert!(!is_retriable && said.contains("not JSON with AccessKeyId"), "{said}");
    }
    let (is_retriable, said) = refusal(given("ASIA1", "soon")).await;
    assert!(!is_retriable && said.contains("\"soon\""), "{said}");
    let (is_retriable, said) = refusal(given("ASIA 1", "2026-01-02T04:04:05Z")).await;
    assert!(!is_retriable && said.contains("white space"), "{said}");
    let (is_retriable, said) = refusal(given("ASIA1", "2026-01-02T03:04:05Z")).await;
    assert!(is_retriable && said.contains("ended already"), "{said}");
}

#[tokio::test]
async fn silence_is_not_waited_for() {
    let (is_retriable, said) = refusal(Reply::Silence).await;
    assert!(is_retriable && said.contains("no answer from http://127.0.0.1"), "{said}");
}

#[tokio::test]
async fn the_file_with_the_token_is_read_each_time() {
    let server =
        Server::start([given("ASIA1", "2026-01-02T03:05:00Z"), given("ASIA2", "2026-01-02T03:05:00Z")]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let container = Container::new(&server.url("/")).unwrap().token_file(&file);
    let msk = MskIam::new("eu-central-1").unwrap().container(container).clock(ManualClock::at(NOW).clock());
    let error = msk.token().await.unwrap_err();
    assert!(!error.is_retriable() && error.to_string().contains("cannot be read"), "{error}");
    for text in ["first\n", "second"] {
        std::fs::write(&file, text).unwrap();
        msk.token().await.unwrap();
    }
    let requests = server.requests();
    assert!(
        requests[0].contains("authorization: first\r\n") && requests[1].contains("authorization: second\r\n"),
        "{requests:?}"
    );
}

/// How often it was asked is in the access key id.
fn counted(ends: Option<u64>) -> impl Fn() -> std::future::Ready<Result<AwsKeys, BoxError>> + Send + Sync {
    let asked = AtomicU64::new(0);
    move || {
        let keys = AwsKeys::new(format!("AKID{}", asked.fetch_add(1, Ordering::SeqCst)), "hunter2");
        let end = ends.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        std::future::ready(Ok(end.into_iter().fold(keys, AwsKeys::expires)))
    }
}

#[tokio::test]
async fn a_function_is_asked_each_time_unless_it_says_when_its_keys_end() {
    for (ends, second) in [(None, "AKID1"), (Some(NOW + 3_600), "AKID0")] {
        let msk = MskIam::new("eu-central-1").unwrap().function(counted(ends)).clock(ManualClock::at(NOW).clock());
        assert_eq!(signer(&msk.token().await.unwrap()), "AKID0");
        assert_eq!(signer(&msk.token().await.unwrap()), second);
    }
    let failing = MskIam::new("eu-central-1").unwrap().function(|| async { Err("the vault is sealed".into()) });
    let error = failing.token().await.unwrap_err();
    assert!(error.is_retriable() && error.to_string().contains("the vault is sealed"), "{error}");
}

#[test]
fn a_region_is_a_part_of_a_host_name() {
    for region in ["", "eu central", "eu-central-1.evil.example/", "EU"] {
        assert!(MskIam::new(region).unwrap_err().to_string().contains("eu-central-1\""), "{region}");
    }
    let shown = format!("{:?}", MskIam::new("us-west-2").unwrap().keys(AwsKeys::new("AKID", "hunter2")));
    assert!(shown.contains("us-west-2") && shown.contains("AKID") && !shown.contains("hunter2"), "{shown}");
}
