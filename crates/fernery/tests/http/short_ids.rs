//! Parts of ids in place of whole ones: what one look costs does not grow with how many ids begin alike.

use crate::pipeline::register;
use crate::server::TestServer;
use fernery_core::limits;
use serde_json::{Value, json};

crate::on_both_backends!(a_part_that_too_many_ids_begin_with_is_refused_and_says_what_to_type);

/// So many tickets whose ids begin and end alike, written as another program would.
async fn many(server: &TestServer, count: i64) {
    let statement = "INSERT INTO objectives (objective_id, azolla_id, title, acceptance_criteria, objective_type, status, importance,
                         urgency, metadata, created_at, updated_at)
                     WITH RECURSIVE n(i) AS (SELECT 1000000 UNION ALL SELECT i + 1 FROM n WHERE i < 999999 + $1)
                     SELECT 'many-' || i || '-of-them', 'mec', 'x', 'x', 'TICKET', 'NEW', 2, 2, '{}', $2, $2 FROM n";
    let substrate = server.engine.substrate();
    let written = substrate.transact(move |sql| {
        let now = sql.now();
        sql.query(statement, &[count.into(), now.into()])
    });
    written.await.expect("written");
}

async fn a_part_that_too_many_ids_begin_with_is_refused_and_says_what_to_type(server: TestServer) {
    register(&server).await;
    let most = limits::IDS_LOOKED_AT_MAX;
    many(&server, most + 10).await;
    let ask =
        async |part: &str| server.get(&format!("/v1/ids/{}", fernery_core::percent::encode(part))).await;
    let one = |id: &str| json!({ "ids": [{ "kind": "ticket", "id": id }] });
    // Only the beginning decides what a look costs.
    for part in ["ma…zz", "many-…000010-of-them", "many-1…zz"] {
        let refused = ask(part).await;
        assert_eq!(refused.status, 422, "{part}: {refused:?}");
        let said = refused.json();
        assert_eq!(said["code"], "invalid", "{said}");
        let detail = said["detail"].as_str().expect("a detail");
        assert!(detail.contains(&format!("more than {most} ids begin like ma")), "{detail}");
        assert!(detail.contains("type more characters of the beginning"), "{detail}");
    }
    assert_eq!(ask("many-1000077-…them").await.json(), one("many-1000077-of-them"));
    assert_eq!(ask("many-1000077-of-them").await.json(), one("many-1000077-of-them"));
    assert_eq!(ask("many-10000…77-of-them").await.json(), one("many-1000077-of-them"));
    assert_eq!(ask("nothing…so").await.json(), json!({ "ids": [] }));
    // Where more match than are told, those that were not looked at do not matter.
    let several: Value = ask("many-…them").await.json();
    assert_eq!(several["ids"].as_array().map(Vec::len), Some(10), "{several}");
    server.stop().await;
}
