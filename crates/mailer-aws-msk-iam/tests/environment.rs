//! What a program sees that says only the region: the environment of its own process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_aws_msk_iam::MskIam;
use mailer_cloud_credentials::testing::{Reply, Server};
use std::process::{Command, Output};

/// Another process, with no variables of AWS but these.
async fn run(variables: Vec<(&'static str, String)>) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "the_other_process", "--nocapture"]);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_")) {
        command.env_remove(name);
    }
    command.envs(variables);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

#[tokio::test]
#[ignore = "the other process of the tests below"]
async fn the_other_process() {
    match MskIam::new("eu-central-1").unwrap().token().await {
        Ok(token) => println!("signed, good for {:?}", token.lifetime),
        Err(error) => println!("{error}"),
    }
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[tokio::test]
async fn keys_of_the_environment_sign() {
    let keys =
        |secret: &str| vec![("AWS_ACCESS_KEY_ID", "AKID".to_owned()), ("AWS_SECRET_ACCESS_KEY", secret.to_owned())];
    let signed = said(&run(keys("hunter2")).await);
    assert!(signed.contains("signed, good for 900s"), "{signed}");
    let empty = said(&run(keys("")).await);
    assert!(empty.contains("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not"), "{empty}");
    let nothing = said(&run(Vec::new()).await);
    assert!(nothing.contains("no credentials of AWS: set AWS_ACCESS_KEY_ID and"), "{nothing}");
}

#[tokio::test]
async fn the_endpoint_of_a_container_is_found() {
    let body = r#"{"AccessKeyId":"ASIA","SecretAccessKey":"hunter2","Token":"t","Expiration":"2999-01-01T00:00:00Z"}"#;
    let server = Server::start([Reply::http(200, "", body)]).await.unwrap();
    let variables = vec![
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url("/keys")),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hunter4".to_owned()),
    ];
    let signed = said(&run(variables).await);
    assert!(signed.contains("signed, good for 900s"), "{signed}");
    let request = server.requests().concat();
    assert!(request.starts_with("GET /keys ") && request.contains("authorization: hunter4\r\n"), "{request}");
}
