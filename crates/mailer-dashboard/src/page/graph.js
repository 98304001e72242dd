// The plan as a picture: stages in columns (rows on a phone), edges coloured by how full they are.

import { count, cut, percent, rate, say, set, svg } from "/dom.js";

const NODE = 216;
const HEAD = 78;
const BAR = 11;
const BARS = 8;
const GAP = 150;
const SPACE = 26;
const MARGIN = 22;

/** Each stage behind all that feed it. */
function levels(plan) {
  const level = new Map(plan.stages.map((stage) => [stage.name, 0]));
  for (const stage of plan.stages) {
    for (const edge of plan.edges.filter((edge) => edge.to === stage.name)) {
      level.set(stage.name, Math.max(level.get(stage.name), level.get(edge.from) + 1));
    }
  }
  return level;
}

const bars = (stage) => Math.min(stage.workers, BARS);
const height = (stage) => HEAD + bars(stage) * BAR + 12;

/** Where everything stands. */
export function layout(plan, isTall) {
  const level = levels(plan);
  const columns = [];
  for (const stage of plan.stages) (columns[level.get(stage.name)] ??= []).push(stage);
  const boxes = new Map();
  const across = (stages) => stages.reduce((sum, stage) => sum + (isTall ? NODE : height(stage)) + SPACE, -SPACE);
  const breadth = Math.max(...columns.map(across));
  let along = MARGIN;
  for (const stages of columns) {
    let place = MARGIN + (breadth - across(stages)) / 2;
    let depth = 0;
    for (const stage of stages) {
      const tall = height(stage);
      boxes.set(stage.name, isTall ? { x: place, y: along, h: tall } : { x: along, y: place, h: tall });
      place += (isTall ? NODE : tall) + SPACE;
      depth = Math.max(depth, isTall ? tall : NODE);
    }
    along += depth + (isTall ? 84 : GAP);
  }
  const length = along - (isTall ? 84 : GAP) + MARGIN;
  const width = breadth + 2 * MARGIN;
  return { boxes, width: isTall ? width : length, height: isTall ? length : width };
}

function curve(edge, boxes, isTall) {
  const [from, to] = [boxes.get(edge.from), boxes.get(edge.to)];
  if (isTall) {
    const [x1, y1, x2, y2] = [from.x + NODE / 2, from.y + from.h, to.x + NODE / 2, to.y - 9];
    const bend = (y2 - y1) / 2;
    return { path: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`, x: (x1 + x2) / 2 + 62, y: (y1 + y2) / 2, tip: `M${x2 - 6} ${y2}h12l-6 9z` };
  }
  const [x1, y1, x2, y2] = [from.x + NODE, from.y + from.h / 2, to.x - 9, to.y + to.h / 2];
  const bend = (x2 - x1) / 2;
  return { path: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 32, tip: `M${x2} ${y2 - 6}v12l9-6z` };
}

/** In words, because a colour alone says nothing to some. */
export function pressure(edge) {
  if (!edge) return "free";
  return edge.pressure >= 0.8 ? "full" : edge.pressure >= 0.4 ? "filling" : "free";
}

const isEnd = (step) => step.kind === "source" || step.kind === "sink";
const steps = (stage) => stage.steps.map((step) => (isEnd(step) || !step.name ? step.kind : step.name)).join(" → ");

function drawNode(stage, box) {
  const rows = Array.from({ length: bars(stage) }, (_, row) => svg("g", { class: "worker", transform: `translate(14 ${HEAD + row * BAR})` },
    svg("rect", { class: "bar-waiting", width: NODE - 28, height: 7, rx: 2 }), svg("rect", { class: "bar-busy", height: 7, width: 0 }),
    svg("rect", { class: "bar-blocked", height: 7, width: 0 })));
  return svg("g", { class: "node", transform: `translate(${box.x} ${box.y})` }, svg("title"),
    svg("rect", { class: "body", width: NODE, height: box.h, rx: 12 }),
    svg("text", { class: "name", x: 14, y: 25 }, cut(stage.name, 22)), svg("text", { class: "steps", x: 14, y: 43 }, cut(steps(stage), 31)),
    svg("text", { class: "rate", x: 14, y: 64 }), svg("text", { class: "meta", x: NODE - 14, y: 64, "text-anchor": "end" }),
    svg("g", { class: "badge", transform: `translate(${NODE - 112} -10)` }, svg("rect", { width: 98, height: 20, rx: 10 }),
      svg("text", { class: "tag", x: 49, y: 14, "text-anchor": "middle" }, "BOTTLENECK")), ...rows);
}

function updateNode(node, stage, live, isSlow) {
  set(node, "class", isSlow ? "node slow" : "node");
  say(node.querySelector(".rate"), live ? rate(live.rate) : "–");
  say(node.querySelector(".meta"), `${stage.workers} worker${stage.workers === 1 ? "" : "s"}`);
  set(node.querySelector(".badge"), "visibility", isSlow ? "visible" : "hidden");
  const width = NODE - 28;
  const title = [steps(stage)];
  [...node.querySelectorAll(".worker")].forEach((row, number) => {
    const worker = live?.workers[number];
    const busy = Math.round((worker?.busy ?? 0) * width);
    const blocked = Math.round(Math.min(worker?.blocked ?? 0, 1) * width);
    set(row.querySelector(".bar-busy"), "width", busy);
    set(row.querySelector(".bar-blocked"), "width", Math.min(blocked, width - busy));
    set(row.querySelector(".bar-blocked"), "x", busy);
    if (worker) title.push(`worker ${number}: busy ${percent(worker.busy)}, blocked ${percent(worker.blocked)}`);
  });
  say(node.querySelector("title"), title.join("\n"));
}

function drawEdge(edge, boxes, isTall) {
  const { path, x, y, tip } = curve(edge, boxes, isTall);
  return svg("g", { class: "edge" }, svg("title"), svg("path", { class: "track", d: path }), svg("path", { class: "flow", d: path }),
    svg("path", { class: "tip", d: tip }), svg("rect", { x: x - 50, y: y - 20, width: 100, height: 38, rx: 9 }),
    svg("text", { class: "rate", x, y: y - 4 }), svg("text", { class: "depth", x, y: y + 11 }));
}

function updateEdge(node, edge, live) {
  const level = pressure(live);
  set(node, "class", `edge ${level}${live?.rate ? "" : " still"}`);
  set(node, "data-pressure", level);
  say(node.querySelector(".rate"), rate(live?.rate));
  const full = level === "full" ? "full · " : "";
  say(node.querySelector(".depth"), live ? `${full}${live.batches} of ${live.capacityBatches}` : "");
  const batches = live ? `${live.batches} of ${live.capacityBatches} batches, refused ${count(live.refused)} times` : "";
  say(node.querySelector("title"), `${edge.name}, ${edge.routing}: ${level}; ${batches}`);
}

/** Draws the plan once for a width, and brings it up to date. */
export class Graph {
  constructor(place) {
    this.place = place;
  }

  show(plan, status) {
    const isTall = this.place.clientWidth < 640;
    if (this.plan !== plan || this.isTall !== isTall) this.draw(plan, isTall);
    const slow = status.bottleneck?.stage;
    const stages = new Map(status.stages.map((stage) => [stage.name, stage]));
    const edges = new Map(status.edges.map((edge) => [edge.name, edge]));
    for (const [stage, node] of this.nodes) updateNode(node, stage, stages.get(stage.name), stage.name === slow);
    for (const [edge, node] of this.edges) updateEdge(node, edge, edges.get(edge.name));
    this.fit();
  }

  draw(plan, isTall) {
    [this.plan, this.isTall] = [plan, isTall];
    this.size = layout(plan, isTall);
    this.nodes = plan.stages.map((stage) => [stage, drawNode(stage, this.size.boxes.get(stage.name))]);
    this.edges = plan.edges.map((edge) => [edge, drawEdge(edge, this.size.boxes, isTall)]);
    for (const [stage, node] of this.nodes) node.dataset.stage = stage.name;
    for (const [edge, node] of this.edges) node.dataset.edge = edge.name;
    const { width, height } = this.size;
    this.picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Plan of ${plan.job}: ${plan.stages.length} stages, ${plan.edges.length} edges` },
      ...this.edges.map(([, node]) => node), ...this.nodes.map(([, node]) => node));
    this.place.replaceChildren(this.picture);
  }

  /** As large as there is room, never too small to read. */
  fit() {
    const room = this.place.clientWidth;
    const scale = Math.min(Math.max(room / this.size.width, 0.72), 1.25);
    set(this.picture, "width", Math.round(this.size.width * scale));
    set(this.picture, "height", Math.round(this.size.height * scale));
  }
}


