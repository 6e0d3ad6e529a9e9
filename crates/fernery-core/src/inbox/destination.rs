//! Where a promoted candidate goes if nobody says: to the azolla that its words name, to the one that works with the repository
//! or the agent that they name, and otherwise to a person.

use crate::artifact::{AzollaId, Metadata};
use crate::blueprint::Blueprint;
use serde_json::Value;

/// The names that a candidate marks: `+these`, `@these` and `#these`.
fn marked(metadata: &Metadata) -> impl Iterator<Item = &str> {
    let lists =
        ["projects", "contexts", "labels"].into_iter().filter_map(|key| metadata.get(key)?.as_array());
    lists.flatten().filter_map(Value::as_str)
}

/// The repository that a candidate names, by `repo_ref` or by a mark.
pub fn repository<'a>(metadata: &Metadata, repos: &'a [String]) -> Option<&'a str> {
    let named = metadata.get("repo_ref").and_then(Value::as_str);
    let known = |name: &str| repos.iter().find(|repo| *repo == name).map(String::as_str);
    named.map_or_else(|| marked(metadata).find_map(known), known)
}

/// Whether an azolla is meant.
type Rule<'a> = &'a dyn Fn(&Blueprint) -> bool;

/// The azolla among these, all of tickets; or why none of them is meant, with what to type.
pub fn destination(metadata: &Metadata, there: &[&Blueprint], repos: &[String]) -> Result<AzollaId, String> {
    let names = |of: &Blueprint| marked(metadata).any(|name| name == of.azolla_id.as_str());
    let agent = |of: &Blueprint| {
        let agent = of.executor().and_then(|executor| executor.agent.as_ref());
        agent.is_some_and(|agent| marked(metadata).any(|name| name == agent.name))
    };
    let wants_repository = metadata.contains_key("repo_ref") || repository(metadata, repos).is_some();
    let at_work = |of: &Blueprint| of.needs_repository() && wants_repository;
    let people = |of: &Blueprint| of.is_for_people();
    let rules: [(Rule<'_>, &str); 4] = [
        (&names, "are named"),
        (&agent, "have the agent that is named"),
        (&at_work, "work on repositories"),
        (&people, "are for what people do"),
    ];
    for (rule, what) in rules {
        let meant: Vec<&AzollaId> = there.iter().filter(|of| rule(of)).map(|of| &of.azolla_id).collect();
        match meant[..] {
            [] => {}
            [only] => return Ok(only.clone()),
            _ if what == "are for what people do" && meant.iter().any(|id| id.as_str() == "tasks") => {
                return Ok(AzollaId::stored("tasks"));
            }
            _ => return Err(several(&meant, what)),
        }
    }
    match there {
        [only] => Ok(only.azolla_id.clone()),
        [] => Err("no azolla of this server has tickets".to_string()),
        there => Err(several(&there.iter().map(|of| &of.azolla_id).collect::<Vec<_>>(), "have tickets")),
    }
}

fn several(meant: &[&AzollaId], what: &str) -> String {
    let names: Vec<&str> = meant.iter().map(|id| id.as_str()).collect();
    format!("several azollas {what}: choose one with --azolla {}", names.join(" or --azolla "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn meant(metadata: Value, repos: &[&str]) -> Result<String, String> {
        let named = |id: &str, of: &str| {
            let text = format!("extends = \"{of}\"\nazolla_id = \"{id}\"\n");
            Blueprint::parse(&text, &|_| None).unwrap()
        };
        let (mec, tasks, docs) = (Blueprint::mec(), Blueprint::tasks(), named("docs", "mec"));
        let metadata: Metadata = serde_json::from_value(metadata).unwrap();
        let repos: Vec<String> = repos.iter().map(ToString::to_string).collect();
        let there: &[&Blueprint] =
            if metadata.contains_key("two") { &[&mec, &docs, &tasks] } else { &[&mec, &tasks] };
        destination(&metadata, there, &repos).map(|id| id.to_string())
    }

    #[test]
    fn what_names_no_repository_and_no_agent_is_for_a_person() {
        assert_eq!(meant(json!({}), &["web"]), Ok("tasks".into()));
        assert_eq!(meant(json!({"projects": ["home"]}), &["web"]), Ok("tasks".into()));
        assert_eq!(meant(json!({"projects": ["web"]}), &["web"]), Ok("mec".into()));
        assert_eq!(meant(json!({"repo_ref": "gone"}), &["web"]), Ok("mec".into()));
        assert_eq!(meant(json!({"labels": ["mec"]}), &[]), Ok("mec".into()));
        assert_eq!(meant(json!({"two": 1, "labels": ["docs"]}), &["web"]), Ok("docs".into()));
        let several = meant(json!({"two": 1, "labels": ["web"]}), &["web"]).unwrap_err();
        assert_eq!(
            several,
            "several azollas work on repositories: choose one with --azolla mec or --azolla docs"
        );
    }

    #[test]
    fn a_repository_is_named_by_its_own_name_only() {
        let repos = ["web".to_string(), "app".to_string()];
        let named = |metadata: Value| {
            repository(&serde_json::from_value(metadata).unwrap(), &repos).map(str::to_string)
        };
        assert_eq!(named(json!({"projects": ["home", "app"]})), Some("app".into()));
        assert_eq!(named(json!({"repo_ref": "web", "projects": ["app"]})), Some("web".into()));
        assert_eq!(named(json!({"repo_ref": "gone", "projects": ["app"]})), None);
    }
}
