//! The statements and the Python program of `embed.md`, as a role that has no more than the grants in it.

use super::fresh_database::fresh_database;
use super::pages::block;
use fernery_core::StreamName;
use fernery_engine::Engine;
use std::process::Command;
use std::time::Duration;

const GUIDE: &str = "embed.md";

/// A Python that has psycopg: the one on the PATH, or Debian's.
fn python() -> &'static str {
    let has = |python: &&&str| {
        let tried = Command::new(python).args(["-c", "import psycopg"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].iter().find(has).copied();
    found.expect("psycopg is needed: apt-get install python3-psycopg, or pip install 'psycopg[binary]'")
}

/// Waits until this many jobs of the stream wait, now or for their time.
async fn jobs_of_mail(engine: &Engine, jobs: i64) {
    let mail = StreamName::new("mail").unwrap();
    let look = async {
        loop {
            let counts = engine.store().stream(mail.clone()).await.unwrap().map(|stream| stream.counts);
            if counts.is_some_and(|counts| counts.ready + counts.scheduled == jobs) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), look).await.expect("the inbox is emptied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_with_the_grants_of_the_guide_enqueues_in_its_own_transactions() {
    let database = fresh_database().await;
    let engine = Engine::postgres(database.url()).await.unwrap();
    // Roles belong to the whole server: this one has a name of its own.
    let role = format!("shop_{:016x}", u64::from_ne_bytes(fernery_engine::door::random_bytes()));
    let owner = database.client().await;
    let run = async |sql: &str| owner.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    run(&format!(
        "CREATE ROLE {role}; CREATE TABLE public.orders (number int); GRANT ALL ON public.orders TO {role}"
    ))
    .await;
    run(&block(GUIDE, "embed:grant").replace("shop", &role)).await;

    run(&format!("SET ROLE {role}")).await;
    run(&block(GUIDE, "embed:enqueue")).await;
    jobs_of_mail(&engine, 1).await;
    run(&block(GUIDE, "embed:insert")).await;
    jobs_of_mail(&engine, 2).await;
    for forbidden in
        ["SELECT payload FROM fernery.inbox", "DELETE FROM fernery.jobs", "SELECT 1 FROM fernery.jobs"]
    {
        let error = owner.batch_execute(forbidden).await.expect_err(forbidden);
        assert_eq!(error.code().map(|code| code.code()), Some("42501"), "{forbidden}: {error:?}");
    }
    run("RESET ROLE").await;

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("order.py"), block(GUIDE, "embed:order.py")).unwrap();
    let mut program = Command::new(python());
    program.arg("order.py").current_dir(folder.path()).env("DATABASE_URL", database.url());
    let ran = tokio::task::spawn_blocking(move || program.output()).await.unwrap().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    jobs_of_mail(&engine, 3).await;
    let job_id = String::from_utf8(ran.stdout).unwrap().trim().parse().expect("it prints the job's id");
    let job = engine.job(job_id, Duration::ZERO).await.unwrap().expect("the job that it made");
    assert_eq!(job.payload.get(), r#"{"to": "grace@example.org"}"#);
    assert_eq!(job.unique_key.as_deref(), Some("order 8"));

    let taken =
        format!("INSERT INTO fernery.inbox (stream, payload, job_id) VALUES ('mail', '{{}}', '{job_id}')");
    run(&taken).await;
    let refused = async || {
        let found = owner.simple_query(&block(GUIDE, "embed:refused")).await.unwrap();
        found.into_iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get("reason").map(str::to_string),
            _ => None,
        })
    };
    let look = async {
        loop {
            match refused().await {
                Some(reason) => return reason,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let reason = tokio::time::timeout(Duration::from_secs(60), look).await.expect("it is kept aside");
    assert!(reason.contains("other content"), "{reason}");
    run(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    engine.close().await;
}
