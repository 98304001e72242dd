// Brings the page up to date, once a second, from the events of the job.

import * as checkpoints from "/checkpoints.js";
import { count, el, find, say, set } from "/dom.js";
import { Graph } from "/graph.js";
import * as panels from "/panels.js";

const TONES = { running: "good", starting: "warn", restarting: "warn", stopping: "warn", failed: "bad", blocked: "bad" };

const graph = new Graph(find("plan"));
let plan = null;
let last = null;

function header(status) {
  say(find("job"), status.job);
  say(find("state"), status.state);
  set(find("state"), "class", `pill ${TONES[status.state] ?? ""}`);
  const title = `${status.state} · ${status.job} · Mailer`;
  if (document.title !== title) document.title = title;
}

/** Names stand between backticks. */
const named = (text) => text.split("`").map((part, place) => (place % 2 ? el("code", {}, part) : part));

/** What to say when no stage is slow: sources may be behind all the same, by more than a second of what is read. */
function calm(status) {
  const lag = status.sources.flatMap((source) => source.splits).reduce((sum, split) => sum + (split.lag ?? 0), 0);
  const heads = status.stages.filter((stage) => !status.edges.some((edge) => edge.to === stage.name));
  const read = heads.reduce((sum, stage) => sum + (stage.rate ?? 0), 0);
  return lag > read ? `No stage holds the job up; ${count(lag)} records wait in its sources.` : "Nothing holds the job up: it keeps up with its sources.";
}

function verdict(status) {
  const error = status.errors.at(-1);
  const isDown = ["failed", "blocked", "restarting"].includes(status.state);
  const standing = status.sources.find((source) => source.standing);
  const [tone, text] = isDown ? ["bad", `The job is ${status.state}: ${error?.message ?? "see the errors below"}`]
    : status.bottleneck ? ["warn", status.bottleneck.sentence]
    : standing ? ["warn", `\`${standing.name}\` stands still: it waits for ${standing.standing.waitsFor}`]
    : status.state === "running" ? ["", calm(status)]
    : ["", `The job is ${status.state}.`];
  set(find("verdict"), "class", `verdict ${tone}`);
  if (find("sentence").textContent !== text.replaceAll("`", "")) find("sentence").replaceChildren(...named(text));
}

function render({ status, checkpoints: list }) {
  last = { status, checkpoints: list };
  header(status);
  verdict(status);
  panels.figures(status, list);
  if (plan) graph.show(plan, status);
  checkpoints.render(list);
  panels.stages(status);
  panels.sources(status);
  panels.keyedState(status);
  panels.output(status);
  panels.recoveries(status);
  panels.errors(status);
  find("actions").hidden = !status.actions;
}

function live(isOn, text) {
  set(find("live"), "class", `live ${isOn ? "on" : "off"}`);
  say(find("live"), text);
}

async function readPlan() {
  const response = await fetch("/api/plan");
  plan = await response.json();
  const guarantee = find("guarantee");
  say(guarantee, plan.guarantee === "none" ? "no checkpoints" : plan.guarantee);
  guarantee.hidden = false;
  if (last) graph.show(plan, last.status);
}

function listen() {
  const events = new EventSource("/api/events");
  events.addEventListener("open", () => {
    live(true, "live");
    // The process may be another one, with another plan.
    readPlan().catch(() => live(false, "the plan cannot be read"));
  });
  events.addEventListener("picture", (event) => render(JSON.parse(event.data)));
  events.addEventListener("error", () => live(false, "connection lost: trying again"));
}

const THEMES = ["system", "light", "dark"];

function theme(name) {
  set(document.documentElement, "data-theme", name === "system" ? null : name);
  say(find("theme"), `Theme: ${name}`);
}

function themes() {
  // A browser may forbid its storage: then the choice lasts as long as the page.
  let kept = "system";
  try { kept = localStorage.getItem("theme") ?? kept; } catch { /* not kept */ }
  theme(THEMES.includes(kept) ? kept : "system");
  find("theme").addEventListener("click", () => {
    kept = THEMES[(THEMES.indexOf(kept) + 1) % THEMES.length];
    try { localStorage.setItem("theme", kept); } catch { /* not kept */ }
    theme(kept);
  });
}

async function act(event) {
  event.preventDefault();
  const action = event.submitter?.value ?? "checkpoint";
  if (action === "drain" && !window.confirm("Drain the job? It takes a last checkpoint and ends.")) return;
  const headers = { Authorization: `Bearer ${find("token").value}` };
  try {
    const response = await fetch(`/api/${action}`, { method: "POST", headers });
    say(find("acted"), (await response.text()).trim());
  } catch {
    say(find("acted"), "The job does not answer.");
  }
}

themes();
checkpoints.legend();
find("act").addEventListener("submit", act);
window.addEventListener("resize", () => { if (plan && last) graph.show(plan, last.status); });
listen();
