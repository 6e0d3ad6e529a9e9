// What the pages do beyond plain HTML. Everything also works without this file; what keeps a page up to date is in live.js.
"use strict";

const main = document.getElementById("main");
const signedIn = document.body.hasAttribute("data-signed-in");
const byId = (id) => document.getElementById(id);
const say = (text) => { byId("said").textContent = text; };

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
  // Its command says the same as the button, also the one that is copied.
  for (const shown of form.querySelectorAll(".ways pre")) {
    shown.querySelector(".copy")?.remove();
    shown.textContent = shown.textContent.replace(/("viewed": *)(true|false)/, `$1${!isViewed}`);
  }
  dress(form);
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
}
// A form that was sent is not sent twice by an impatient hand; its act would count once anyway.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "yes";
  window.addEventListener("pageshow", () => { delete form.dataset.sent; }, { once: true });
});
