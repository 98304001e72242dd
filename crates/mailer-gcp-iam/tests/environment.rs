//! What a program sees that says nothing: the environment of its own process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_cloud_credentials::testing::{Reply, Server};
use mailer_gcp_iam::GcpIam;
use std::process::Command;

#[tokio::test]
#[ignore = "the other process of the test below"]
async fn the_other_process() {
    match GcpIam::new().access_token().await {
        Ok(token) => println!("a token of {}", token.principal()),
        Err(error) => println!("{error}"),
    }
}

async fn run(host: String) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "the_other_process", "--nocapture"]).env("GCE_METADATA_HOST", host);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_metadata_server_is_where_the_environment_says() {
    let answer = |body: &str| Reply::http(200, "Metadata-Flavor: Google\r\n", body);
    let token = answer(r#"{"access_token":"ya29.hunter2","expires_in":3599,"token_type":"Bearer"}"#);
    let server = Server::start([token, answer("svc@p.iam.gserviceaccount.com")]).await.unwrap();
    let found = run(server.host()).await;
    assert!(found.contains("a token of svc@p.iam.gserviceaccount.com") && !found.contains("hunter2"), "{found}");
    let wrong = run(server.url("/")).await;
    assert!(wrong.contains("GCE_METADATA_HOST: \"http://127.0.0.1"), "{wrong}");
}
