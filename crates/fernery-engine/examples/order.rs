//! An order and its mail, in one PostgreSQL transaction: both or neither.

use tokio_postgres::{Client, Error};
use uuid::Uuid;

/// Stores the order and the job; answers with the job's id.
pub async fn order(client: &mut Client, number: i32, mail: &str) -> Result<Uuid, Error> {
    let transaction = client.transaction().await?;
    transaction.execute("INSERT INTO orders (number) VALUES ($1)", &[&number]).await?;
    let sql = "SELECT fernery.enqueue('mail', $1::text::json, unique_key => $2)";
    let row = transaction.query_one(sql, &[&mail, &format!("order {number}")]).await?;
    transaction.commit().await?;
    Ok(row.get(0))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL")?;
    let (mut client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    println!("{}", order(&mut client, 7, r#"{"to": "ada@example.org"}"#).await?);
    Ok(())
}
