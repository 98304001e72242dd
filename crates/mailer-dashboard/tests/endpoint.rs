//! What the endpoint answers, and what it refuses.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod support;

use mailer_dashboard::{Dashboard, DashboardExt, IntoEndpoint, parse_address};
use mailer_runtime::{Env, JobStatus};
use serde_json::Value;
use std::io::Write;
use std::net::TcpStream;
use support::start;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn the_api_tells_what_runs_and_how() {
    let running = start("");
    let ready = running.get_until("/readyz", |answer| answer.status == 200);
    assert_eq!(ready.body, "running\n");
    assert_eq!(running.get("/healthz").status, 200);
    let plan = json(&running.get("/api/plan").body);
    assert_eq!((plan["job"].as_str(), plan["guarantee"].as_str()), (Some("observed"), Some("at least once")));
    assert_eq!(plan["stages"][1]["steps"][0]["name"], "counts");
    let status = json(
        &running
            .get_until("/api/status", |answer| {
                let status = json(&answer.body);
                let rates = status["stages"].as_array().is_some_and(|all| all.iter().all(|it| it["rate"].is_number()));
                rates
                    && status["keyedState"][0]["entries"] == 100
                    && status["checkpoint"]["completed"].as_u64() > Some(3)
            })
            .body,
    );
    assert_eq!((status["state"].as_str(), status["version"].as_u64()), (Some("running"), Some(1)));
    assert_eq!(status["edges"][0]["from"], plan["edges"][0]["from"]);
    assert!(status["stages"][1]["workers"][1]["busy"].is_number(), "{status}");
    assert_eq!(status["recoveries"][0]["from"], Value::Null);
    let checkpoints = json(&running.get("/api/checkpoints").body);
    let last = checkpoints.as_array().unwrap().iter().rev().find(|it| it["outcome"] == "completed").unwrap();
    assert_eq!(last["phases"].as_array().unwrap().len(), 7, "{last}");
    running.stop();
}

#[test]
fn the_page_has_all_its_files_and_asks_for_nothing_else() {
    let running = start("");
    let page = running.get("/");
    assert!(page.status == 200 && page.head.contains("content-type: text/html"));
    for path in ["/style.css", "/icon.svg", "/app.js", "/dom.js", "/graph.js", "/panels.js", "/checkpoints.js"] {
        let file = running.get(path);
        assert_eq!(file.status, 200, "{path}");
        // Namespaces are names, not addresses.
        let outside = file.body.replace("http://www.w3.org/2000/svg", "");
        assert!(!outside.contains("http://") && !outside.contains("https://") && !outside.contains("//cdn"), "{path}");
    }
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "x-content-type-options: nosniff",
        "x-frame-options: deny",
        "referrer-policy: no-referrer",
    ] {
        assert!(page.head.contains(header), "{header} is missing in {}", page.head);
    }
    running.stop();
}

#[test]
fn events_come_at_once_and_end_with_the_job() {
    let running = start("");
    running.get_until("/readyz", |answer| answer.status == 200);
    std::thread::scope(|scope| {
        let events = scope.spawn(|| running.get("/api/events"));
        running.get_until("/api/status", |answer| json(&answer.body)["checkpoint"]["completed"].as_u64() > Some(5));
        running.job.stop(mailer_runtime::Stop::Drain).unwrap();
        let events = events.join().unwrap();
        assert!(events.head.contains("content-type: text/event-stream"), "{events:?}");
        let last = events.body.rsplit("data: ").next().unwrap().trim();
        assert_eq!(json(last)["status"]["state"], "finished");
    });
    running.job.wait().unwrap();
}

#[test]
fn only_our_names_are_answered_to() {
    let running = start("");
    let with_host =
        |host: &str| running.send(format!("GET /api/status HTTP/1.1\r\n{host}Connection: close\r\n\r\n").as_bytes());
    for ours in ["Host: localhost:1\r\n", "Host: 127.0.0.1\r\n", "Host: jobs.test:80\r\n", "Host: [::1]:9464\r\n"] {
        assert_eq!(with_host(ours).status, 200, "{ours}");
    }
    for other in
        ["Host: evil.example\r\n", "Host: localhost.evil.example\r\n", "Host: \r\n", "Host: 127.0.0.1.evil\r\n"]
    {
        let answer = with_host(other);
        assert_eq!(answer.status, 421, "{other}{answer:?}");
        assert!(!answer.body.contains("observed"));
    }
    for bad in ["", "Host: localhost\r\nHost: evil.example\r\n"] {
        assert_eq!(with_host(bad).status, 400, "{bad}");
    }
    running.stop();
}

#[test]
fn actions_need_a_token_and_post() {
    let running = start("a long secret");
    running.get_until("/readyz", |answer| answer.status == 200);
    let post = |path: &str, headers: &str| running.request("POST", path, &format!("Content-Length: 0\r\n{headers}"));
    for headers in
        ["", "Authorization: Bearer\r\n", "Authorization: Bearer wrong\r\n", "Authorization: Basic a long secret\r\n"]
    {
        assert_eq!(post("/api/savepoint", headers).status, 401, "{headers}");
        assert_eq!(post("/api/drain", headers).status, 401, "{headers}");
    }
    assert_eq!(running.get("/api/drain").status, 405);
    assert_eq!(running.job.status().checkpoints.iter().filter(|it| it.kind == "savepoint").count(), 0);
    let ours = "Authorization: Bearer a long secret\r\n";
    assert_eq!(post("/api/savepoint", ours).status, 202);
    running.get_until("/api/checkpoints", |answer| answer.body.contains("savepoint"));
    assert_eq!(post("/api/drain", ours).status, 202);
    running.job.wait().unwrap();
}

#[test]
fn without_a_token_nothing_can_be_changed() {
    let running = start(" ");
    for path in ["/api/checkpoint", "/api/savepoint", "/api/drain"] {
        for headers in ["", "Authorization: Bearer \r\n", "Authorization: Bearer x\r\n"] {
            let answer = running.request("POST", path, &format!("Content-Length: 0\r\n{headers}"));
            assert_eq!(answer.status, 403, "{path} {headers}");
        }
    }
    running.stop();
}

#[test]
fn abuse_is_answered_with_4xx_and_leaves_the_endpoint_alive() {
    let running = start("secret");
    for path in [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/api",
        "/api/status/",
        "/API/STATUS",
        "/style.css/../../Cargo.toml",
        "/.env",
        "/%00",
        "/api/status%0d%0aX-Evil:1",
    ] {
        assert_eq!(running.get(path).status, 404, "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        assert_eq!(running.request(method, "/api/status", "Content-Length: 0\r\n").status, 405, "{method}");
    }
    let long = "a".repeat(1 << 20);
    let is_refused = |answer: support::Answer| (400..500).contains(&answer.status);
    assert!(is_refused(running.get(&format!("/{long}"))), "a path of a mebibyte");
    assert!(is_refused(running.request("GET", "/", &format!("X-Long: {long}\r\n"))), "a header of a mebibyte");
    let many: String = (0..500).map(|n| format!("X-{n}: 1\r\n")).collect();
    assert!(is_refused(running.request("GET", "/", &many)), "500 headers");
    for garbage in
        [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\0\0\0\0\r\n\r\n"]
    {
        assert!(is_refused(running.send(garbage)), "{garbage:?}");
    }
    let control = running.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\nConnection: close\r\n\r\n");
    assert!(is_refused(control), "a control character in a header");
    assert_eq!(running.get("/healthz").status, 200);
    running.stop();
}

#[test]
fn loopback_is_the_default_and_a_taken_address_says_so() {
    let endpoint = ":0".into_endpoint().unwrap();
    assert!(endpoint.address().ip().is_loopback());
    let again = Dashboard::new(endpoint.address()).listen().unwrap_err().to_string();
    assert!(again.contains("cannot listen on") && again.contains("choose another address"), "{again}");
    let Err(error) = Env::new("x").dashboard("example.org:80") else { panic!("that is no address") };
    assert!(error.to_string().contains("give :PORT"), "{error}");
    assert!(parse_address("[::1]:1").unwrap().ip().is_loopback());
}

/// Fifty who ask and never read, and one who asks without pause: the job takes records and checkpoints all the same.
#[test]
fn clients_hold_nothing_up() {
    let running = start("");
    running.get_until("/readyz", |answer| answer.status == 200);
    let deaf: Vec<_> = (0..50)
        .map(|n| {
            let path = if n % 2 == 0 { "/metrics" } else { "/api/events" };
            let mut stream = TcpStream::connect(running.address).unwrap();
            for _ in 0..20 {
                let _ = write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            }
            stream
        })
        .collect();
    let before = running.job.status();
    let mut scrapes = 0;
    let after = loop {
        assert_eq!(running.get("/metrics").status, 200);
        scrapes += 1;
        let status = running.job.status();
        if status.completed >= before.completed + 10 {
            break status;
        }
    };
    let taken = |status: &JobStatus| status.stages[0].records;
    // Ten checkpoints, 50 ms apart, at 50,000 records a second.
    assert!(taken(&after) - taken(&before) >= 10_000, "{} records, {scrapes} scrapes", taken(&after) - taken(&before));
    assert!(running.job.status().failed == 0);
    drop(deaf);
    running.stop();
}
