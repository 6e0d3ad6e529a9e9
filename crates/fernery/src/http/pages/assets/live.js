// Keeps a page up to date. Everything also works without this file; it uses names of app.js, which comes first.
//
// Changes come over one stream for a browser, however many tabs it has: the tab that holds the lock listens and tells the others.
// A page that is told that a topic has changed asks for itself again and puts in what is marked with that topic. Nothing is shown
// before the server has said it, and nothing that somebody has typed is ever replaced.
"use strict";

const AT_MOST_EVERY_MS = 1000;
const dot = byId("live");
const waiting = new Set();
let timer = null;
let asking = false;
let lastAsked = 0;
let paused = false;
try { paused = sessionStorage.getItem("paused") === "yes"; } catch { /* storage is off: it is not kept */ }

// How far everything had come before this page was made, then as this tab was told last: a word for each topic.
let known = document.body.dataset.before || "";

function news(id) {
  const had = new Set(known.split("."));
  known = id;
  changed(id.split(".").filter((word) => !had.has(word)).map((word) => word.split("-")[0]));
}

function topicsOf(element) { return element.dataset.live.split(" "); }

function changed(topics) {
  const here = new Set([...document.querySelectorAll("[data-live]")].flatMap(topicsOf));
  topics.filter((topic) => here.has(topic)).forEach((topic) => waiting.add(topic));
  soon();
}

function soon() {
  if (paused || timer !== null || asking || waiting.size === 0 || document.hidden) return;
  timer = setTimeout(refresh, Math.max(0, lastAsked + AT_MOST_EVERY_MS - Date.now()));
}

async function refresh() {
  clearTimeout(timer);
  timer = null;
  asking = true;
  lastAsked = Date.now();
  const topics = new Set(waiting);
  waiting.clear();
  try {
    const url = new URL(location.href);
    url.hash = "";
    url.searchParams.set("part", "main");
    const answer = await fetch(url, { headers: { accept: "text/html" }, redirect: "error" });
    if (answer.status === 401) { leaveOff(); return; }
    // The page that answers a form has no address of its own: it stays as it was answered.
    if (answer.status === 405) return;
    if (!answer.ok) throw new Error(answer.status);
    put(new DOMParser().parseFromString(await answer.text(), "text/html"), topics);
    document.body.classList.remove("stale");
  } catch {
    // The server is away: what stands here may be old, and is asked for again when it is back.
    topics.forEach((topic) => waiting.add(topic));
    document.body.classList.add("stale");
  } finally {
    asking = false;
  }
  soon();
}

// Whoever must sign in again sees that, unless something that stands here would be lost: it was typed, or shown only once.
function leaveOff() {
  if (!document.body.hasAttribute("data-answer") && typedIn(document).length === 0 && !main.querySelector(".carried")) { location.reload(); return; }
  if (byId("signed-out")) return;
  const bar = note("To see what has changed, sign in again. What you typed stays here. ");
  bar.id = "signed-out";
  const link = document.createElement("a");
  link.href = location.pathname;
  link.target = "_blank";
  link.textContent = "Sign in in another tab";
  bar.append(link);
  main.prepend(bar);
}

function note(text) {
  const bar = document.createElement("p");
  bar.className = "note";
  bar.setAttribute("role", "status");
  bar.textContent = text;
  return bar;
}

// What is typed --------------------------------------------------------------------------------------------------------------

// Fields that are not as the server sent them. Ticks that have an id are kept when a part is replaced.
function typedIn(part) {
  return [...part.querySelectorAll("form[method=post] :is(input:not([type=hidden]), textarea, select)")].filter((field) => {
    if (field.matches("select")) {
      const first = [...field.options].findIndex((option) => option.defaultSelected);
      return field.selectedIndex !== Math.max(0, first);
    }
    if (field.matches("[type=checkbox], [type=radio]")) return !field.id && field.checked !== field.defaultChecked;
    return field.value !== field.defaultValue;
  });
}

// What a part says, without what is new each time that it is made, and what this script has added.
function content(part) {
  const copy = part.cloneNode(true);
  copy.querySelectorAll(".copy, .news, .carried, [name=act_id]").forEach((element) => element.remove());
  copy.querySelectorAll("time").forEach((time) => { time.textContent = time.dateTime; });
  copy.querySelectorAll("details").forEach((details) => { details.open = false; });
  copy.querySelectorAll(".at").forEach((row) => row.classList.remove("at"));
  copy.querySelectorAll("[class=\"\"]").forEach((row) => row.removeAttribute("class"));
  return copy.innerHTML;
}

// Parts whose news somebody has asked to see.
const wanted = new Set();

function offer(part) {
  if (part.querySelector(".news")) return;
  const bar = note("This has changed since you began to type. ");
  bar.classList.add("news");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Show what is new";
  button.addEventListener("click", () => {
    wanted.add(part.id);
    topicsOf(part).forEach((topic) => waiting.add(topic));
    if (!asking) refresh();
  });
  bar.append(button);
  part.prepend(bar);
}

// A text that would be lost otherwise, with what it is.
function carried(what, text) {
  const kept = document.createElement("div");
  kept.className = "carried";
  const shown = document.createElement("pre");
  shown.dataset.copy = "";
  shown.textContent = text;
  kept.append(note(what), shown);
  return kept;
}

// Types into the fresh part what was typed into the old one. A text that somebody else wrote meanwhile is shown below its field. What
// has no field any more is shown before the part, where the next change leaves it alone.
function carry(typed, old, part) {
  for (const field of typed) {
    const forms = [...part.querySelectorAll("form")].filter((form) => form.getAttribute("action") === field.form.getAttribute("action"));
    const same = forms.flatMap((form) => [...form.elements]).find((other) => other.name === field.name && other.type === field.type && (other.type !== "checkbox" || other.value === field.value));
    if (field.type === "checkbox") { if (same) same.checked = field.checked; continue; }
    if (!same) {
      const kept = carried("What you had typed; its form is gone:", field.value);
      old.before(kept);
      dress(kept);
      continue;
    }
    if (same.defaultValue !== field.defaultValue && same.defaultValue) same.after(carried("Somebody else wrote:", same.defaultValue));
    same.value = field.value;
  }
}

// Putting in -----------------------------------------------------------------------------------------------------------------

// The same details in a fresh part: by its id or, without one, by its place below the nearest element that has an id.
function sameDetails(open, part) {
  const find = (id) => (part.id === id ? part : part.querySelector("#" + CSS.escape(id)));
  if (open.id) return find(open.id);
  const above = open.parentElement.closest("[id]");
  const place = [...above.querySelectorAll("details:not([id])")].indexOf(open);
  return find(above.id)?.querySelectorAll("details:not([id])")[place];
}

// Puts in what has changed, and leaves alone where somebody types.
function put(fresh, topics) {
  for (const old of document.querySelectorAll("[data-live][id]")) {
    const now = fresh.getElementById(old.id);
    if (!now || !topicsOf(old).some((topic) => topics.has(topic))) continue;
    if (old.outerHTML === now.outerHTML) continue;
    const [typed, asked] = [typedIn(old), wanted.delete(old.id)];
    if (typed.length > 0 && !asked) { if (content(old) !== content(now)) offer(old); continue; }
    const active = document.activeElement;
    const inside = old.contains(active) ? active : null;
    // Whoever is about to type is not disturbed either: it is looked at again when they go on.
    if (inside && inside.matches("input:not([type=checkbox]), textarea, select")) {
      inside.addEventListener("blur", () => changed(topicsOf(old)), { once: true });
      continue;
    }
    carry(typed, old, now);
    for (const open of old.querySelectorAll("details[open]")) {
      const same = sameDetails(open, now);
      if (same) same.open = true;
    }
    // A box stays as somebody left it. A job that has come since then was not ticked by anybody, also on a page that came ticked.
    for (const box of now.querySelectorAll("input[type=checkbox][id]")) {
      const was = old.querySelector("#" + CSS.escape(box.id));
      if (was || box.name === "job") box.checked = Boolean(was?.checked);
    }
    const at = old.querySelector(".at")?.id;
    old.replaceWith(now);
    if (at) byId(at)?.classList.add("at");
    if (inside && inside.id) byId(inside.id)?.focus();
    dress(now);
  }
}

// The stream ---------------------------------------------------------------------------------------------------------------

const tabs = "BroadcastChannel" in window ? new BroadcastChannel("fernery-live") : null;

let open = false;

function hear(message) {
  if (message.asks && open) tabs.postMessage({ state: "open", id: known });
  if (message.state) { dot.classList.toggle("open", message.state === "open"); }
  if (message.id) news(message.id);
}

function tell(message) {
  hear(message);
  tabs?.postMessage(message);
}

// Holds the lock, and so the stream, until this tab is gone. The stream begins where this page was made, or where the tab that held
// it before has told of changes last: what happens between the two is told, too.
function listen() {
  return new Promise((done) => {
    const source = new EventSource("/events?known=" + encodeURIComponent(known));
    source.addEventListener("open", () => { open = true; tell({ state: "open", id: known }); });
    source.addEventListener("error", () => {
      open = false;
      tell({ state: "closed" });
      // The browser comes back by itself unless the server refused.
      if (source.readyState === EventSource.CLOSED) setTimeout(done, 15000);
    });
    source.addEventListener("changed", (event) => tell({ state: "open", id: event.lastEventId }));
    window.addEventListener("pagehide", () => { source.close(); done(); }, { once: true });
  });
}

async function follow() {
  dot.hidden = false;
  showPaused();
  dot.addEventListener("click", togglePause);
  tabs?.addEventListener("message", (event) => hear(event.data));
  tabs?.postMessage({ asks: true });
  document.addEventListener("visibilitychange", soon);
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  for (;;) {
    if (navigator.locks) await navigator.locks.request("fernery-live", listen);
    else await listen();
  }
}

function showPaused() {
  dot.setAttribute("aria-pressed", String(!paused));
  dot.textContent = paused ? "paused" : "live";
}

function togglePause() {
  paused = !paused;
  try { sessionStorage.setItem("paused", paused ? "yes" : "no"); } catch { /* not kept */ }
  showPaused();
  say(paused ? "Changes are not shown" : "Changes are shown as they come");
  soon();
}

if (signedIn && "EventSource" in window && document.querySelector("[data-live]")) follow();
