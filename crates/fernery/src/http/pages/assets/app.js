// What the pages do beyond plain HTML. Everything also works without this file.
//
// Changes come over one stream for a browser, however many tabs it has: the tab that holds the lock listens and tells the others.
// A page that is told that a topic has changed asks for itself again and puts in what is marked with that topic. Nothing is shown
// before the server has said it.
"use strict";

const main = document.getElementById("main");
const signedIn = document.body.hasAttribute("data-signed-in");
const byId = (id) => document.getElementById(id);
const say = (text) => { byId("said").textContent = text; };

// Bringing a page up to date -----------------------------------------------------------------------------------------------

const AT_MOST_EVERY_MS = 1000;
const dot = byId("live");
const waiting = new Set();
let timer = null;
let asking = false;
let lastAsked = 0;
let paused = false;
try { paused = sessionStorage.getItem("paused") === "yes"; } catch { /* storage is off: it is not kept */ }

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
    if (answer.status === 401) { location.reload(); return; }
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
    const active = document.activeElement;
    const inside = old.contains(active) ? active : null;
    if (inside && inside.matches("input:not([type=checkbox]), textarea, select")) { topicsOf(old).forEach((t) => topics.has(t) && waiting.add(t)); continue; }
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
  if (message.asks && open) tabs.postMessage({ state: "open" });
  if (message.state) { dot.classList.toggle("open", message.state === "open"); }
  if (message.topics) changed(message.topics);
}

function tell(message) {
  hear(message);
  tabs?.postMessage(message);
}

// Holds the lock, and so the stream, until this tab is gone.
function listen() {
  return new Promise((done) => {
    const source = new EventSource("/events");
    source.addEventListener("open", () => { open = true; tell({ state: "open" }); });
    source.addEventListener("error", () => {
      open = false;
      tell({ state: "closed" });
      // The browser comes back by itself unless the server refused.
      if (source.readyState === EventSource.CLOSED) setTimeout(done, 15000);
    });
    source.addEventListener("changed", (event) => tell({ state: "open", topics: event.data.split(" ").filter(Boolean) }));
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

// Copying ------------------------------------------------------------------------------------------------------------------

// Over plain HTTP there is no clipboard for scripts but that of a selection.
function copy(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "hidden";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done ? Promise.resolve() : Promise.reject(new Error("not copied"));
}

function dress(part) {
  for (const element of part.querySelectorAll("[data-copy]")) {
    if (element.nextElementSibling?.classList.contains("copy") || element.querySelector(".copy")) continue;
    const text = element.textContent;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy: " + text.slice(0, 60));
    button.addEventListener("click", async () => {
      try { await copy(text); button.textContent = "Copied"; say("Copied"); } catch { button.textContent = "Not copied"; }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    if (element.matches("pre")) element.prepend(button); else element.after(button);
  }
}

// The keyboard -------------------------------------------------------------------------------------------------------------

let going = false;

function move(by) {
  const rows = [...main.querySelectorAll("[data-row]")];
  if (rows.length === 0) return;
  const at = rows.findIndex((row) => row.classList.contains("at"));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by))];
  rows[at]?.classList.remove("at");
  next.classList.add("at");
  (next.querySelector("a, button, summary") || next).focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function key(event) {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if ((event.ctrlKey || event.metaKey) && event.key === "k") { event.preventDefault(); palette(); return; }
  if (event.key === "Escape" && typing) { typing.blur(); return; }
  if (event.key === "Escape") { closeMenus(null); return; }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (going) {
    going = false;
    const link = document.querySelector(`.top nav a[data-go="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  const own = main.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  const acts = {
    "/": palette,
    "j": () => move(1),
    "k": () => move(-1),
    "g": () => { going = true; setTimeout(() => { going = false; }, 1200); },
    "?": () => { location.href = "/keys"; },
    ".": togglePause,
    "c": () => { const box = byId("capture"); if (box) box.focus(); else location.href = "/#capture"; },
  };
  // A key that is held down decides once.
  if (own && event.repeat) return;
  const act = own ? () => press(own) : acts[event.key];
  if (act) { event.preventDefault(); act(); }
}

function press(own) {
  if (own.matches("input, textarea")) { own.focus(); return; }
  own.click();
  if (own.matches("summary") && own.parentElement.open) own.parentElement.querySelector("input:not([type=hidden]), textarea, select")?.focus();
}

// A menu of the top closes when somebody goes on elsewhere.
function closeMenus(target) {
  for (const menu of document.querySelectorAll(".top details[open]")) if (!menu.contains(target)) menu.open = false;
}

// Finding: the same page as /find, over this one.
function palette() {
  let box = byId("palette");
  if (!box) {
    box = document.createElement("dialog");
    box.id = "palette";
    box.setAttribute("aria-label", "Find");
    box.innerHTML = '<label class="hidden" for="palette-q">Find</label><input id="palette-q" type="search" autocomplete="off" spellcheck="false" placeholder="Tickets, jobs, streams, pages"><div id="palette-found"></div>';
    document.body.append(box);
    const input = byId("palette-q");
    let number = 0;
    input.addEventListener("input", async () => {
      const mine = ++number;
      await new Promise((done) => setTimeout(done, 150));
      if (mine !== number) return;
      const answer = await fetch("/find?part=main&q=" + encodeURIComponent(input.value)).catch(() => null);
      if (!answer?.ok || mine !== number) return;
      const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("found");
      byId("palette-found").replaceChildren(...(found ? [found] : []));
    });
    box.addEventListener("keydown", (event) => {
      const links = [...box.querySelectorAll("a")];
      const at = links.indexOf(document.activeElement);
      if (event.key === "ArrowDown") { event.preventDefault(); links[Math.min(links.length - 1, at + 1)]?.focus(); }
      if (event.key === "ArrowUp") { event.preventDefault(); (at > 0 ? links[at - 1] : input).focus(); }
      if (event.key === "Enter" && document.activeElement === input) {
        event.preventDefault();
        location.href = links[0]?.href || "/find?q=" + encodeURIComponent(input.value);
      }
    });
  }
  if (!box.open) box.showModal();
  byId("palette-q").select();
}

// Review -------------------------------------------------------------------------------------------------------------------

// Says that a file was viewed, or not after all; it closes or opens when the server has kept it.
async function view(event) {
  const form = event.target.closest("form[data-viewed]");
  if (!form) return;
  event.preventDefault();
  const [fields, button] = [new URLSearchParams(new FormData(form)), form.querySelector("button")];
  const isViewed = fields.get("viewed") === "yes";
  button.disabled = true;
  const answer = await fetch(form.action, { method: "POST", body: fields, redirect: "manual" }).catch(() => null);
  button.disabled = false;
  if (answer?.type !== "opaqueredirect") { form.submit(); return; }
  form.elements.viewed.value = isViewed ? "no" : "yes";
  button.textContent = isViewed ? "Not viewed" : "Viewed";
  const file = form.closest("details");
  file.open = !isViewed;
  if (isViewed) file.querySelector("summary").focus();
  const of = document.querySelector(`[data-viewed-of="${CSS.escape(form.dataset.viewed)}"]`);
  if (of) of.textContent = isViewed ? "viewed" : "";
  const count = byId("viewed-count");
  if (!count) return;
  count.dataset.viewed = Number(count.dataset.viewed) + (isViewed ? 1 : -1);
  count.textContent = `${count.dataset.viewed} of ${count.dataset.files} viewed`;
  say(count.textContent);
}

// The line of a cell with a number: its side, its number and its row.
function lineOf(cell) {
  const row = cell?.closest?.("table.diff tr:not(.h):not(.c)");
  if (!row || !byId("comment-template") || !row.closest("details")?.querySelector("[data-comment]")) return null;
  const across = row.closest("table").classList.contains("beside");
  const places = across ? { 0: "old", 2: "new" } : { 0: "old", 1: "new" };
  let place = cell.cellIndex;
  if (!(place in places)) return null;
  if (!across && !row.cells[place].textContent) place = 1 - place;
  const number = Number(row.cells[place].textContent);
  const only = row.closest("table").dataset.lines;
  const shown = only === undefined || places[place] === "new" && only.split(" ").some((range) => { const [from, to] = range.split("-").map(Number); return from <= number && number <= to; });
  return number && shown ? { row, side: places[place], number } : null;
}

let from = null;
let chosen = null;

function comment(first, last) {
  if (first.side !== last.side || first.row.closest("table") !== last.row.closest("table")) first = last;
  if (first.number > last.number) [first, last] = [last, first];
  const typed = chosen?.row.querySelector("textarea").value || "";
  leave();
  const file = last.row.closest("details").querySelector("[data-comment]");
  const row = document.createElement("tr");
  row.className = "c";
  const cell = row.insertCell();
  cell.colSpan = last.row.cells.length;
  cell.append(byId("comment-template").content.cloneNode(true));
  const form = cell.querySelector("form");
  form.action = file.dataset.comment;
  const id = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const fields = { act_id: id, file: file.dataset.file, side: first.side, first_line: first.number, last_line: last.number, text: typed };
  for (const [name, value] of Object.entries(fields)) form.elements[name].value = value;
  const lines = first.number === last.number ? `line ${first.number}` : `lines ${first.number} to ${last.number}`;
  form.querySelector("[data-lines-said]").textContent = `Comment on ${lines}${first.side === "old" ? " before the patch" : ""}`;
  form.querySelector("[data-leave]").addEventListener("click", leave);
  last.row.after(row);
  let at = first.row;
  while (at && at !== row) { at.classList.add("chosen"); at = at.nextElementSibling; }
  chosen = { first, row };
  form.elements.text.focus();
}

function leave() {
  chosen?.row.remove();
  chosen = null;
  document.querySelectorAll("tr.chosen").forEach((row) => row.classList.remove("chosen"));
}

function review() {
  document.addEventListener("submit", view);
  if (!byId("comment-template")) return;
  main.classList.add("commentable");
  main.addEventListener("mousedown", (event) => { from = lineOf(event.target); if (from) event.preventDefault(); });
  main.addEventListener("mouseup", (event) => {
    const to = lineOf(event.target);
    const first = event.shiftKey && chosen ? chosen.first : from;
    from = null;
    if (to && first) comment(first, to);
  });
}

// Start --------------------------------------------------------------------------------------------------------------------

dress(document);
review();
if (signedIn) {
  document.addEventListener("keydown", key);
  document.addEventListener("click", (event) => closeMenus(event.target));
  if (location.hash === "#capture") byId("capture")?.focus();
  if ("EventSource" in window && document.querySelector("[data-live]")) follow();
}
// A form that was sent is not sent twice by an impatient hand; its act would count once anyway.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "yes";
  window.addEventListener("pageshow", () => { delete form.dataset.sent; }, { once: true });
});
