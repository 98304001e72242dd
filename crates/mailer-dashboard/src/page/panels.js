// Everything beside the plan and the checkpoints.

import { bytes, clock, count, duration, el, find, keyed, percent, rate, say, set } from "/dom.js";

const share = (kind, value) => {
  const part = el("i", { class: kind });
  part.style.width = `${Math.max(0, Math.min(1, value ?? 0)) * 100}%`;
  return part;
};

function table(headings, rows) {
  const heading = ([text, kind]) => el("th", { scope: "col", class: kind }, text);
  return el("table", {}, el("thead", {}, el("tr", {}, ...headings.map(heading))), el("tbody", {}, ...rows));
}

const cell = (content, kind) => el("td", { class: kind }, ...[content].flat());
const empty = (text) => el("p", { class: "empty" }, text);

/** Replaces what a panel shows; panels have nothing in them that takes the focus. */
function show(id, ...content) {
  find(id).replaceChildren(...content);
}

export function stages(status) {
  const rows = status.stages.flatMap((stage) => stage.workers.map((worker, number) => {
    const label = `busy ${percent(worker.busy)}, waiting ${percent(worker.waiting)}, blocked ${percent(worker.blocked)}`;
    const bar = el("div", { class: "shares", role: "img", "aria-label": label }, share("busy", worker.busy), share("blocked", worker.blocked), share("waiting", worker.waiting));
    const behind = stage.watermark === null ? "–" : duration(Math.max(0, status.now - (worker.watermark ?? stage.watermark)) / 1000);
    return el("tr", { "data-stage": stage.name }, cell(number === 0 ? el("strong", {}, stage.name) : ""), cell(String(number), "number"), cell(bar),
      cell(percent(worker.busy), "number"), cell(percent(worker.blocked), "number extra"), cell(rate(worker.rate), "number"), cell(behind, "number extra"));
  }));
  show("stages", table([["Stage"], ["Worker", "number"], ["Time"], ["Busy", "number"], ["Blocked", "number extra"], ["Records", "number"], ["Time behind", "number extra"]], rows));
}

function splitState(split) {
  return split.paused ? "paused: ahead of the others" : split.idle ? "idle" : "";
}

/** A partition: how far it is behind, where its source can tell, and where it stands. */
function splitRow(split, most, now) {
  const behind = split.watermark === null ? "–" : duration(Math.max(0, now - split.watermark) / 1000);
  const notes = [splitState(split), split.position === null ? "" : `at ${split.position.toLocaleString("en")}`].filter(Boolean).join(" · ");
  const name = cell([split.name, notes ? el("div", { class: "sub" }, notes) : null]);
  if (most === null) return el("tr", {}, name, cell(behind, "number"));
  const bar = el("div", { class: "meter", role: "img", "aria-label": split.lag === null ? "lag not known" : `lag ${count(split.lag)}` }, share("", (split.lag ?? 0) / most));
  return el("tr", { "data-lag": split.lag ?? "" }, name, cell(bar, "lag"), cell(count(split.lag), "number"), cell(behind, "number"));
}

export function sources(status) {
  const parts = status.sources.flatMap((source) => {
    const lags = source.splits.map((split) => split.lag).filter((lag) => lag !== null);
    const most = lags.length ? Math.max(1, ...lags) : null;
    const rows = source.splits.map((split) => splitRow(split, most, status.now));
    const lagging = most === null ? [] : [["Lag"], ["Records", "number"]];
    const total = most === null ? null : el("span", { class: "sub" }, ` ${count(lags.reduce((a, b) => a + b, 0))} records behind in ${source.splits.length} partitions`);
    const standing = source.standing ? el("p", { class: "note strong" }, `Has stood still for ${duration(source.standing.seconds)}; it waits for ${source.standing.waitsFor}`) : null;
    return [el("p", {}, el("strong", {}, source.name), total), standing, table([["Partition"], ...lagging, ["Time behind", "number"]], rows)].filter(Boolean);
  });
  show("sources", ...(parts.length ? parts : [empty("No source has started yet.")]));
}

/** How often an operator found what it looked up without asking the backend. */
function found(lookups) {
  const all = lookups ? lookups.hits + lookups.misses : 0;
  return all ? el("div", { class: "sub" }, `${percent(lookups.hits / all)} of look-ups found decoded`) : null;
}

export function keyedState(status) {
  const most = Math.max(1, ...status.keyedState.map((state) => state.bytes));
  const lookups = (operator) => status.lookups.find((one) => one.operator === operator);
  const rows = status.keyedState.map((state) => el("tr", {}, cell([state.operator ?? "all operators (estimate)", found(lookups(state.operator))]),
    cell(el("div", { class: "meter", role: "img", "aria-label": bytes(state.bytes) }, share("", state.bytes / most))),
    cell(bytes(state.bytes), "number"), cell(count(state.entries), "number")));
  show("keyed", rows.length ? table([["Operator"], ["Share"], ["Bytes", "number"], ["Entries", "number"]], rows) : empty("No keyed state, or no barrier yet."));
}

/** Exactly-once output: what its targets show, and what waits for the next checkpoint. */
function published(status) {
  if (!status.publishes.length) return [];
  const rows = status.publishes.map((target) => el("tr", {}, cell(target.target), cell(count(target.transactions), "number"), cell(count(target.records), "number"), cell(bytes(target.bytes), "number extra"),
    cell(count(target.retries), target.retries ? "number warn" : "number"), cell(count(target.fenced), target.fenced ? "number bad" : "number")));
  const targets = table([["Exactly-once target"], ["Commits", "number"], ["Records", "number"], ["Bytes", "number extra"], ["Retries", "number"], ["Fenced", "number"]], rows);
  const used = status.staging.budget ? status.staging.bytes / status.staging.budget : 0;
  const text = `Staged for the next checkpoint: ${bytes(status.staging.bytes)} of ${bytes(status.staging.budget)}`;
  const bar = el("div", { class: "meter", role: "img", "aria-label": `${percent(used)} of the budget` }, share("", used));
  return [el("div", { id: "publishes" }, targets), el("div", { id: "staging" }, el("p", { class: "note" }, text), bar)];
}

export function output(status) {
  const rows = status.sinks.map((sink) => el("tr", {}, cell(sink.name), cell(count(sink.records), "number"), cell(rate(sink.rate), "number")));
  const parts = [table([["Sink"], ["Records", "number"], ["Rate", "number"]], rows), ...published(status)];
  const counted = status.operators.filter((operator) => operator.count > 0);
  if (counted.length) {
    const counts = counted.map((operator) => el("tr", {}, cell(operator.name), cell(operator.event), cell(count(operator.count), "number")));
    parts.push(table([["Operator"], ["Counts"], ["Records", "number"]], counts));
  }
  show("sinks", ...parts);
}

function recoveryText(start) {
  const from = start.from === null ? "Fresh start, without a checkpoint" : `Recovered from checkpoint ${start.from}`;
  const forward = start.rolledForward ? ", published what was decided" : "";
  const restored = start.restored.length ? `; restored ${start.restored.join(", ")}` : "";
  return `${from} in ${duration(start.seconds)}${forward}${restored}`;
}

export function recoveries(status) {
  const list = [...status.recoveries].reverse();
  const create = (start) => el("li", { class: start.after ? "bad" : "good" }, el("div", { class: "when" }, clock(start.at)), el("div", {}, recoveryText(start)),
    start.after ? el("div", { class: "sub" }, `after: ${start.after}`) : null);
  keyed(find("recoveries"), list, (start) => `${start.at}/${start.from}/${start.seconds}`, create);
}

export function errors(status) {
  const list = [...status.errors].map((error, place) => ({ ...error, place })).reverse();
  const create = (error) => el("li", { class: "bad" }, el("div", { class: "when" }, `${clock(error.at)} · ended a ${error.of} · ${error.kind}`), el("div", {}, error.message));
  const items = list.length ? list : [{ none: true }];
  keyed(find("errors"), items, (error) => (error.none ? "none" : `${error.at}/${error.message}`), (error) => (error.none ? el("li", { class: "good" }, "None so far.") : create(error)));
}

function sparkline(values) {
  const most = Math.max(1, ...values);
  const points = values.map((value, place) => `${(place / Math.max(1, values.length - 1)) * 100},${40 - (value / most) * 36}`);
  return points.join(" ");
}

const total = (values) => {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
};

/** Rates of the last two minutes, for the small curves. */
const history = { in: [], out: [] };

function remember(name, value) {
  history[name].push(value ?? 0);
  if (history[name].length > 120) history[name].shift();
  return history[name];
}

export function figures(status, checkpoints) {
  const heads = new Set(status.sources.map((source) => source.name));
  const into = total(status.stages.filter((stage) => heads.has(stage.name)).map((stage) => stage.rate));
  const out = total(status.sinks.map((sink) => sink.rate));
  const lag = total(status.sources.flatMap((source) => source.splits.map((split) => split.lag)));
  const last = checkpoints.findLast((checkpoint) => checkpoint.outcome === "completed");
  const age = last ? (status.now - last.started) / 1000 - last.seconds : null;
  const held = total(status.keyedState.map((state) => state.bytes));
  const list = [
    { label: "Records in", value: rate(into), curve: remember("in", into) },
    { label: "Records out", value: rate(out), curve: remember("out", out) },
    { label: "Lag", value: count(lag), hint: lag === null ? "the sources cannot tell" : "records to be read" },
    { label: "Last checkpoint", value: age === null ? "–" : `${duration(Math.max(0, age))} ago`, hint: last ? `#${last.id} took ${duration(last.seconds)}` : "none completed yet" },
    { label: "Keyed state", value: bytes(held), hint: "at the last barrier" },
    { label: "Restarts", value: String(status.restarts), hint: `${count(status.checkpoint.failed)} failed checkpoints` },
  ];
  const namespace = "http://www.w3.org/2000/svg";
  const create = (figure) => {
    const card = el("div", { class: "figure" }, el("span", { class: "label" }, figure.label), el("span", { class: "value" }), el("span", { class: "hint" }));
    if (figure.curve) {
      const picture = document.createElementNS(namespace, "svg");
      set(picture, "viewBox", "0 0 100 44");
      set(picture, "preserveAspectRatio", "none");
      set(picture, "aria-hidden", "true");
      const line = document.createElementNS(namespace, "polyline");
      set(line, "class", "spark");
      picture.append(line);
      card.append(picture);
    }
    return card;
  };
  keyed(find("figures"), list, (figure) => figure.label, create, (card, figure) => {
    say(card.querySelector(".value"), figure.value);
    say(card.querySelector(".hint"), figure.hint ?? "");
    if (figure.curve) set(card.querySelector("polyline"), "points", sparkline(figure.curve));
  });
}
