//! The program on the first page of the crate's documentation does what it says.

#[path = "../../../../fernery-client/examples/mail.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod mail;

use super::world::{Working, World};
use fernery_client::JobEnd;

#[tokio::test]
async fn the_first_program_sends_a_mail_and_gives_up_on_one_without_a_host() {
    let world = World::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let postman = mail::postman(world.worker_client()).spool(folder.path().join("spool"));
    let working = Working::begin(postman);
    let sent = mail::send(&world.producer(), "ada@example.org").await.unwrap();
    assert_eq!(sent, JobEnd::Succeeded("good morning".len()));
    let JobEnd::Dead(error) = mail::send(&world.producer(), "ada").await.unwrap() else { panic!("no host") };
    assert_eq!((&*error.code, &*error.message), ("no_host", "ada"));
    assert_eq!(working.end().await.to_string(), "2 claimed, 1 succeeded, 1 failed, 0 released");
}
