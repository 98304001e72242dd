// A little of what frameworks do: elements, keyed lists, and figures as people read them.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) set(node, name, value);
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Sets an attribute only when it changes; null removes it. */
export function set(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const find = (id) => document.getElementById(id);

/** Text that is touched only when it changes, so that a selection and a screen reader stay in peace. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Makes the children of `parent` those of `items`, and keeps the elements of items that stay. */
export function keyed(parent, items, key, create, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = null;
  for (const item of items) {
    const name = String(key(item));
    let node = old.get(name);
    old.delete(name);
    if (!node) {
      node = create(item);
      node.dataset.key = name;
    }
    const next = place ? place.nextElementSibling : parent.firstElementChild;
    if (next !== node) parent.insertBefore(node, next);
    update?.(node, item);
    place = node;
  }
  for (const node of old.values()) node.remove();
}

const LETTERS = ["", "k", "M", "G", "T"];

function scaled(value, base, units, between) {
  let step = 0;
  while (Math.abs(value) >= base * 0.9995 && step < units.length - 1) { value /= base; step += 1; }
  const digits = step === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return [value.toFixed(digits), between + units[step]];
}

const joined = (parts) => parts.join("").trim();
const known = (value) => value !== null && value !== undefined;

export const count = (value) => (known(value) ? joined(scaled(value, 1000, LETTERS, value >= 1000 ? "\u202f" : "")) : "–");
export const rate = (value) => (known(value) ? `${count(Math.round(value))}/s` : "–");
export const bytes = (value) => (known(value) ? joined(scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"], "\u202f")) : "–");
export const percent = (share) => (known(share) ? `${Math.round(share * 100)}\u202f%` : "–");

export function duration(seconds) {
  if (!known(seconds)) return "–";
  if (seconds === 0) return "0\u202fms";
  if (seconds < 0.001) return "<1\u202fms";
  if (seconds < 1) return `${Math.round(seconds * 1000)}\u202fms`;
  if (seconds < 10) return `${seconds.toFixed(1)}\u202fs`;
  if (seconds < 120) return `${Math.round(seconds)}\u202fs`;
  if (seconds < 7200) return `${Math.round(seconds / 60)}\u202fmin`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)}\u202fh`;
  return `${Math.round(seconds / 86400)}\u202fdays`;
}

export const clock = (time) => new Date(time).toLocaleTimeString([], { hour12: false });

/** Text within a width, as many letters as fit. */
export const cut = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);
