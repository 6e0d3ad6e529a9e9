//! A Chromium with a profile of its own, driven over WebDriver. It ends with the test, however that ends: the driver is killed
//! when its test is gone, and the browser ends when the pipe to its driver does.

use crate::program::marked;
use crate::program::patience::{PATIENCE, eventually};
use crate::server::TestServer;
use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::elements::Element;
use fantoccini::error::CmdError;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use fernery_engine::door::stop_watch;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How often it is looked whether something has come.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Nothing that phones home, nothing that needs a desktop, and a sandbox only where one can be made.
const FLAGS: [&str; 16] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--password-store=basic",
    "--window-size=1280,900",
    // Its end is the browser's end.
    "--remote-debugging-pipe",
];

pub(crate) struct Chromium {
    pub(crate) client: Client,
    driver: Child,
    profile: TempDir,
}

/// A command that this driver knows beyond WebDriver.
#[derive(Debug)]
struct Beyond {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Beyond {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}

impl Chromium {
    pub(crate) async fn start() -> Self {
        Self::with(json!({}), None).await
    }

    /// One for which this name is one of this machine, as a name in somebody's network is: not a secure context.
    pub(crate) async fn that_resolves(name: &str) -> Self {
        Self::with(json!({}), Some(format!("--host-resolver-rules=MAP {name} 127.0.0.1"))).await
    }

    /// One that runs no script of any page.
    pub(crate) async fn without_script() -> Self {
        Self::with(json!({ "profile.managed_default_content_settings.javascript": 2 }), None).await
    }

    async fn with(preferences: Value, flag: Option<String>) -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let (driver, url) = start_driver(&profile);
        let own = format!("--user-data-dir={}", profile.path().display());
        let flags: Vec<&str> = FLAGS.iter().copied().chain([own.as_str()]).chain(flag.as_deref()).collect();
        let wanted = json!({
            "goog:chromeOptions": { "binary": found("chromium"), "args": flags, "prefs": preferences },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            // A dialog is left open, so that whatever comes next fails.
            "unhandledPromptBehavior": "ignore",
        });
        let Value::Object(wanted) = wanted else { unreachable!("it is an object") };
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let client = builder.capabilities(wanted).connect(&url).await.expect("a browser");
        Self { client, driver, profile }
    }

    /// The processes of this browser.
    pub(crate) fn processes(&self) -> Vec<i32> {
        marked(self.profile.path().to_str().expect("a path"))
    }

    /// Kills the driver, as the end of a test that is killed does.
    pub(crate) fn kill_driver(&mut self) {
        self.driver.kill().expect("killed");
        self.driver.wait().expect("ended");
    }

    pub(crate) async fn close(self) {
        self.client.clone().close().await.expect("closed");
    }

    pub(crate) async fn open(&self, url: &str) {
        self.client.goto(url).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    }

    /// The path of the page that is shown, with what follows it.
    pub(crate) async fn path(&self) -> String {
        let url = self.client.current_url().await.expect("an address");
        url[url::Position::BeforePath..].to_string()
    }

    /// Waits for an element.
    pub(crate) async fn see(&self, css: &str) -> Element {
        let wait = self.client.wait().at_most(PATIENCE).every(LOOK_EVERY);
        match wait.for_element(Locator::Css(css)).await {
            Ok(element) => element,
            Err(error) => panic!("no {css} at {}: {error}\n{}", self.path().await, self.words("body").await),
        }
    }

    /// Whether an element is there now.
    pub(crate) async fn has(&self, css: &str) -> bool {
        !self.client.find_all(Locator::Css(css)).await.expect("a list").is_empty()
    }

    /// The text of an element as a person sees it.
    pub(crate) async fn words(&self, css: &str) -> String {
        match self.client.find(Locator::Css(css)).await {
            Ok(element) => element.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// Waits until an element says this.
    pub(crate) async fn reads(&self, css: &str, text: &str) {
        let until = stop_watch() + PATIENCE;
        loop {
            let words = self.words(css).await;
            if words.contains(text) {
                return;
            }
            assert!(stop_watch() < until, "{css} at {} never says {text:?}: {words}", self.path().await);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Clicks what a person would call so: a button, a link, or what opens more.
    pub(crate) async fn press(&self, label: &str) {
        let xpath = format!(
            "//*[self::button or self::a or self::summary][normalize-space()={label:?} and not(ancestor::details[not(@open)] \
             and not(self::summary))]"
        );
        self.press_at(&xpath).await;
    }

    /// Clicks what is at this place.
    pub(crate) async fn press_at(&self, xpath: &str) {
        self.click_on(Locator::XPath(xpath)).await;
    }

    /// Clicks as a person does, who never notices that a live part of the page was replaced a moment before.
    async fn click_on(&self, place: Locator<'_>) {
        loop {
            let wait = self.client.wait().at_most(PATIENCE).every(LOOK_EVERY);
            let clicked = match wait.for_element(place).await {
                Ok(element) => match self.center(&element).await {
                    Ok(()) => element.click().await,
                    Err(error) => Err(error),
                },
                Err(error) => Err(error),
            };
            match clicked {
                Err(error) if error.is_stale_element_reference() => {}
                Err(error) => {
                    panic!("{place:?} at {}: {error}\n{}", self.path().await, self.words("body").await)
                }
                Ok(()) => return,
            }
        }
    }

    /// Scrolls an element to where nothing stands over it: the top of a page stays in sight.
    pub(crate) async fn center(&self, element: &Element) -> Result<(), CmdError> {
        let element = serde_json::to_value(element).expect("an element");
        let script = "arguments[0].scrollIntoView({ block: 'center' })";
        self.client.execute(script, vec![element]).await.map(drop)
    }

    pub(crate) async fn click(&self, css: &str) {
        self.click_on(Locator::Css(css)).await;
    }

    /// Empties a field and types into it.
    pub(crate) async fn fill(&self, css: &str, text: &str) {
        let field = self.see(css).await;
        field.clear().await.unwrap_or_else(|error| panic!("{css}: {error}"));
        field.send_keys(text).await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Presses keys one after the other, wherever the focus is.
    pub(crate) async fn keys(&self, keys: &str) {
        let press =
            |keys: KeyActions, value| keys.then(KeyAction::Down { value }).then(KeyAction::Up { value });
        let all = keys.chars().fold(KeyActions::new("keyboard".into()), press);
        self.client.perform_actions(all).await.expect("pressed");
    }

    /// Holds one key while another is pressed.
    pub(crate) async fn chord(&self, held: char, value: char) {
        let all = KeyActions::new("keyboard".into())
            .then(KeyAction::Down { value: held })
            .then(KeyAction::Down { value })
            .then(KeyAction::Up { value })
            .then(KeyAction::Up { value: held });
        self.client.perform_actions(all).await.expect("pressed");
    }

    /// What a script answers that the test runs in the page.
    pub(crate) async fn script(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Waits until a script in the page answers with true.
    pub(crate) async fn until(&self, script: &str) {
        let until = stop_watch() + PATIENCE;
        while self.script(script).await != true {
            assert!(
                stop_watch() < until,
                "never at {}: {script}\n{}",
                self.path().await,
                self.words("body").await
            );
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// A command of the developer's tools.
    pub(crate) async fn tools(&self, command: &str, with: Value) -> Value {
        let body = json!({ "cmd": command, "params": with });
        let asked = Beyond { path: "goog/cdp/execute", body };
        self.client.issue_cmd(asked).await.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// What was logged since it was last asked: `browser` is what pages said, `performance` what went over the network.
    pub(crate) async fn logged(&self, kind: &str) -> Vec<Value> {
        let asked = Beyond { path: "se/log", body: json!({ "type": kind }) };
        let said = self.client.issue_cmd(asked).await.expect("a log");
        said.as_array().cloned().expect("a list")
    }

    /// Shows pages in the dark theme or the light one.
    pub(crate) async fn theme(&self, theme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.tools("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    /// Makes the screen this wide, in pixels of a page at this zoom.
    pub(crate) async fn screen(&self, width: u32, height: u32, zoom: u32) {
        let (width, height) = (width / zoom, height / zoom);
        let screen = json!({ "width": width, "height": height, "deviceScaleFactor": zoom, "mobile": false });
        self.tools("Emulation.setDeviceMetricsOverride", screen).await;
    }

    /// Signs in under the name of the pages of a server, with a token.
    pub(crate) async fn sign_in(&self, server: &TestServer, token: &str) -> String {
        let site = site(server);
        self.open(&format!("{site}/sign-in")).await;
        self.fill("#token", token).await;
        self.press("Sign in").await;
        self.see("body[data-signed-in]").await;
        site
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        // Its folder goes next, and nobody writes there any more.
        let gone = eventually(|| self.processes().is_empty());
        assert!(gone || std::thread::panicking(), "the browser outlives its driver: {:?}", self.processes());
    }
}

/// Where the pages of a server are.
pub(crate) fn site(server: &TestServer) -> String {
    format!("http://{}:{}", server.running.pages_host(), server.addr().port())
}

fn found(program: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    let found = found.unwrap_or_else(|| {
        panic!("{program} was not found; install the Debian packages chromium and chromium-driver")
    });
    found.to_str().expect("a path").to_string()
}

/// Starts the driver on a port of its own choice: it says which as soon as it listens.
fn start_driver(profile: &TempDir) -> (Child, String) {
    let home = profile.path();
    let mut driver = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--", &found("chromedriver"), "--port=0"])
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .env("XDG_CACHE_HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("setpriv is installed");
    let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines();
    let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let rest = line.strip_prefix("ChromeDriver was started successfully on port ")?;
        rest.trim_end_matches('.').parse::<u16>().ok()
    });
    // A full pipe must not stop it.
    std::thread::spawn(move || lines.for_each(drop));
    (driver, format!("http://127.0.0.1:{}", port.expect("the driver listens")))
}
