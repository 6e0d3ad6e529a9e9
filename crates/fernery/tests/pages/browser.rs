//! A browser without script: it keeps cookies as browsers do, by host name and for every port, and sends forms with what is in
//! them.

use crate::server::{Answer, TestServer, read_to_end};
use fernery_core::percent::encode;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Cookies by host name, then by their own name.
type Jar = BTreeMap<String, BTreeMap<String, String>>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Browser {
    jar: Jar,
}

/// Where a page is: the name in the address bar, and where that leads.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) host: String,
    pub(crate) addr: SocketAddr,
}

impl Site {
    /// The pages of a server under their own name.
    pub(crate) fn own(server: &TestServer) -> Self {
        Self { host: server.running.pages_host().to_string(), addr: server.addr() }
    }

    pub(crate) fn named(server: &TestServer, host: &str) -> Self {
        Self { host: host.to_string(), addr: server.addr() }
    }

    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.addr.port())
    }
}

impl Browser {
    pub(crate) fn cookies(&self, host: &str) -> Vec<(String, String)> {
        self.jar.get(host).into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    pub(crate) fn set_cookie(&mut self, host: &str, name: &str, value: &str) {
        self.jar.entry(host.to_string()).or_default().insert(name.to_string(), value.to_string());
    }

    fn keep(&mut self, site: &Site, answer: &Answer) {
        let Some(cookie) = answer.headers.get("set-cookie") else { return };
        let (pair, attributes) = cookie.split_once(';').unwrap_or((cookie, ""));
        let (name, value) = pair.split_once('=').expect("a cookie");
        let jar = self.jar.entry(site.host.clone()).or_default();
        match attributes.contains("Max-Age=0;") {
            true => drop(jar.remove(name)),
            false => drop(jar.insert(name.to_string(), value.to_string())),
        }
    }

    /// The head that this browser sends with every request.
    pub(crate) fn head(&self, site: &Site, method: &str, path: &str) -> String {
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nconnection: close\r\naccept: text/html\r\nhost: {}\r\n",
            site.authority()
        );
        let cookies: Vec<String> =
            self.cookies(&site.host).iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            text.push_str(&format!("cookie: {}\r\n", cookies.join("; ")));
        }
        text
    }

    pub(crate) async fn send(&mut self, site: &Site, text: &str) -> Answer {
        let mut stream = TcpStream::connect(site.addr).await.expect("a connection");
        stream.write_all(text.as_bytes()).await.expect("sent");
        let answer = read_to_end(&mut stream).await;
        self.keep(site, &answer);
        answer
    }

    pub(crate) async fn get(&mut self, site: &Site, path: &str) -> Answer {
        let text = self.head(site, "GET", path) + "\r\n";
        self.send(site, &text).await
    }

    /// Sends a form from a page of the same site.
    pub(crate) async fn post(&mut self, site: &Site, path: &str, fields: &[(&str, &str)]) -> Answer {
        let origin = format!("http://{}", site.authority());
        self.post_from(site, path, fields, &[("origin", &origin), ("sec-fetch-site", "same-origin")]).await
    }

    pub(crate) async fn post_from(
        &mut self,
        site: &Site,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Answer {
        let pairs: Vec<String> =
            fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        let body = pairs.join("&");
        let mut text = self.head(site, "POST", path);
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("content-type: application/x-www-form-urlencoded\r\n");
        text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        self.send(site, &text).await
    }

    /// Fills in the form of a page that goes to `action`, and sends it. Fields that the page hides are sent as they are.
    pub(crate) async fn submit(
        &mut self,
        site: &Site,
        page: &Answer,
        action: &str,
        typed: &[(&str, &str)],
    ) -> Answer {
        let form = form(&page.body, action);
        let mut fields: Vec<(String, String)> = form;
        for (name, value) in typed {
            fields.retain(|(other, _)| other != name);
            fields.push((name.to_string(), value.to_string()));
        }
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.post(site, action, &fields).await
    }

    /// Signs in with a token and ends on the page after it.
    pub(crate) async fn sign_in(&mut self, site: &Site, token: &str) {
        let answer = self.post(site, "/sign-in", &[("token", token), ("next", "/")]).await;
        assert_eq!(answer.status, 303, "{answer:?}");
    }
}

/// A browser that is signed in with this token under the server's own name.
pub(crate) async fn signed_in(server: &TestServer, token: &str) -> (Browser, Site) {
    let (mut browser, site) = (Browser::default(), Site::own(server));
    browser.sign_in(&site, token).await;
    (browser, site)
}

/// The hidden fields of the last form that goes to `action`.
pub(crate) fn form(html: &str, action: &str) -> Vec<(String, String)> {
    let marked = format!("action=\"{action}\"");
    let from = html.rfind(&marked).unwrap_or_else(|| panic!("no form goes to {action}: {html}"));
    let end = html[from..].find("</form>").map_or(html.len(), |end| from + end);
    let inputs = html[from..end].split("<input type=\"hidden\" ").skip(1);
    inputs.map(|input| (unescaped(attribute(input, "name")), unescaped(attribute(input, "value")))).collect()
}

/// The value of an attribute, as it stands there.
pub(crate) fn attribute<'a>(tag: &'a str, name: &str) -> &'a str {
    let marked = format!("{name}=\"");
    let from = tag.find(&marked).unwrap_or_else(|| panic!("no {name}: {tag}")) + marked.len();
    &tag[from..from + tag[from..].find('"').expect("an end")]
}

pub(crate) fn unescaped(text: &str) -> String {
    let named = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    named
        .replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&#38;", "&")
        .replace("&amp;", "&")
}

/// The text of a page without its tags.
pub(crate) fn words(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, after)| after));
        text.push(' ');
    }
    unescaped(&text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a page shows this value under this name: in a field, chosen in a list, or among what was sent. Hidden fields show nothing.
pub(crate) fn holds(html: &str, name: &str, value: &str) -> bool {
    let tag = |at: usize| &html[html[..at].rfind('<').expect("a tag")..];
    let named = format!(" name=\"{name}\"");
    let sent = format!("><bdi>{}</bdi></label><textarea ", name.replace('_', " "));
    let fields = html.match_indices(&named).map(|(at, found)| tag(at + found.len()));
    let kept = html.match_indices(&sent).map(|(at, found)| tag(at + found.len()));
    fields.chain(kept).filter_map(shown_in).any(|shown| unescaped(shown) == value)
}

/// What a field shows, from its tag on.
fn shown_in(field: &str) -> Option<&str> {
    let (tag, rest) = field.split_once('>')?;
    if tag.starts_with("<textarea") {
        let text = rest.split("</textarea>").next()?;
        return Some(text.strip_prefix('\n').unwrap_or(text));
    }
    if tag.starts_with("<select") {
        let mut options =
            rest.split("</select>").next()?.split("<option").skip(1).map(|option| option.split_once('>'));
        let (tag, text) =
            options.find(|option| option.is_some_and(|(tag, _)| tag.ends_with(" selected")))??;
        return Some(if tag.contains("value=\"") {
            attribute(tag, "value")
        } else {
            text.split('<').next()?
        });
    }
    (!tag.contains("type=\"hidden\"") && tag.contains(" value=\"")).then(|| attribute(tag, "value"))
}
