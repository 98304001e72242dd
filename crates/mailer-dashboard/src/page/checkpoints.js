// The timeline of checkpoints: a column each, its phases stacked, and one of them in detail.

import { bytes, clock, count, duration, el, find, keyed, say, set } from "/dom.js";

const PHASES = ["aligning", "snapshot", "linking", "linked", "preparing", "publishing", "completing"];

const MEANING = {
  aligning: "barrier travels", snapshot: "parts are written", linking: "one snapshot of all parts", linked: "waits for the one before",
  preparing: "manifest", publishing: "output becomes visible", completing: "marked, debris deleted",
};

let chosen = null;
let current = [];

function paint(node, phase) {
  node.style.background = `var(--phase-${phase})`;
  return node;
}

export function legend() {
  find("phases").replaceChildren(...PHASES.map((phase) => el("li", { title: MEANING[phase] }, paint(el("i", { class: "swatch" }), phase), phase)));
}

const label = (one) => `Checkpoint ${one.id}, ${one.kind}, ${one.outcome}, ${duration(one.seconds)}, at ${clock(one.started)}`;

function choose(id) {
  chosen = id;
  render(current);
}

/** Arrow keys walk through the timeline: one stop of the tabulator for all of it. */
function walk(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const next = step === 1 ? event.currentTarget.nextElementSibling : step === -1 ? event.currentTarget.previousElementSibling : null;
  if (!next) return;
  event.preventDefault();
  choose(Number(next.dataset.id));
  next.focus();
}

function column(one) {
  const button = el("button", { type: "button", "data-id": one.id });
  button.addEventListener("click", () => choose(one.id));
  button.addEventListener("keydown", walk);
  return button;
}

function updateColumn(button, one, longest, selected) {
  set(button, "class", one.outcome);
  set(button, "aria-label", label(one));
  set(button, "aria-pressed", one.id === selected);
  set(button, "tabindex", one.id === selected ? 0 : -1);
  keyed(button, one.phases, (phase) => phase.phase, (phase) => paint(el("i"), phase.phase), (part, phase) => {
    part.style.height = `${(phase.seconds / longest) * 100}%`;
  });
}

function detail(one) {
  if (!one) return [el("p", { class: "empty" }, "No checkpoint has been taken yet.")];
  const state = { completed: "completed", failed: "given up", running: "under way" }[one.outcome];
  const fact = (name, value, phase) => el("div", {}, el("dt", {}, phase ? paint(el("i", { class: "swatch" }), phase) : null, name), el("dd", {}, value));
  const parts = [el("p", { class: "title" }, `#${one.id} · ${one.kind} · ${state} ${one.outcome === "running" ? "for" : "in"} ${duration(one.seconds)} · ${clock(one.started)}`)];
  if (one.error) parts.push(el("p", { class: "note strong" }, one.error));
  parts.push(el("dl", {}, ...one.phases.map((phase) => fact(phase.phase, duration(phase.seconds), phase.phase)),
    // Known once its manifest is made.
    one.outcome === "running" && !one.stateBytes ? null : fact("state", bytes(one.stateBytes)),
    one.outcome === "running" && !one.outputBytes ? null : fact("output", `${bytes(one.outputBytes)} · ${count(one.outputRecords)} records`)));
  return parts;
}

function waiting(list) {
  const running = list.find((one) => one.outcome === "running");
  const phase = running?.phases.at(-1);
  if (!running || phase.seconds < 0.3) return null;
  return `Checkpoint ${running.id} has been ${phase.phase} for ${duration(phase.seconds)}; it waits for ${running.waitsFor.join(", ") || "nothing that has a name"}`;
}

export function render(list) {
  current = list;
  const newest = list.at(-1)?.id ?? null;
  const selected = list.some((one) => one.id === chosen) ? chosen : newest;
  const longest = Math.max(0.001, ...list.map((one) => one.seconds));
  keyed(find("timeline"), list, (one) => `${one.id}/${one.started}`, column, (button, one) => updateColumn(button, one, longest, selected));
  const shown = list.findLast((one) => one.id === selected);
  find("checkpoint").replaceChildren(...detail(shown));
  const waits = waiting(list);
  const note = find("checkpoint-now");
  set(note, "class", waits ? "note strong" : "note");
  say(note, waits ?? (list.length ? `The last ${list.length}; the longest took ${duration(longest)}. Use the arrow keys, or click one.` : ""));
}
