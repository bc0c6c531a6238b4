// Makes and updates elements. Text is set as text only: names of models are not markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node[name] = value;
    else if (name === "style") node.wanted = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  if (node.wanted) applyStyle(node, node.wanted);
  for (const child of children.flat(9)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

// Through the object model: the policy of the page refuses style attributes.
function applyStyle(node, style) {
  for (const [name, value] of Object.entries(style)) node.style.setProperty(name, value);
}

export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// A name that a user has chosen, apart from the direction of the text around it.
export const name = (text) => el("bdi", {}, text);

// Turns the children of `parent` into `children`, and keeps the elements that stay, so that focus,
// scrolling and open details stay too.
export function show(parent, ...children) {
  const wanted = children.flat(9).filter((c) => c !== undefined && c !== null && c !== false)
    .map((c) => (c instanceof Node ? c : document.createTextNode(String(c))));
  wanted.forEach((node, at) => {
    const old = parent.childNodes[at];
    if (!old) parent.append(node);
    else if (old !== node) place(parent, old, node);
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

function place(parent, old, node) {
  const key = (n) => (n.dataset ? n.dataset.key : undefined);
  if (key(node) && key(old) !== key(node)) {
    const known = [...parent.children].find((child) => key(child) === key(node));
    if (known) {
      parent.insertBefore(known, old);
      return update(known, node);
    }
    return parent.insertBefore(node, old);
  }
  return update(old, node);
}

function update(old, node) {
  if (old.nodeType !== node.nodeType || old.nodeName !== node.nodeName) {
    old.replaceWith(node);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== node.data) old.data = node.data;
    return;
  }
  for (const { name: attribute } of [...old.attributes]) {
    const kept = attribute === "style" || (attribute === "open" && old.nodeName === "DETAILS");
    if (!kept && !node.hasAttribute(attribute)) old.removeAttribute(attribute);
  }
  for (const { name: attribute, value } of node.attributes) {
    if (attribute !== "style" && old.getAttribute(attribute) !== value) old.setAttribute(attribute, value);
  }
  if (node.wanted) applyStyle(old, node.wanted);
  for (const event of ["onclick", "onchange", "oninput"]) if (old[event] !== node[event]) old[event] = node[event];
  show(old, [...node.childNodes]);
}

export const card = (title, ...children) => el("section", { class: "card" }, el("h3", {}, title), ...children);

export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]));
}

// A table; on a phone each row is a block with the heads as labels.
export function table(caption, heads, rows) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: "wide" }, el("caption", {}, caption),
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows)));
}

export function row(heads, cells, attributes = {}) {
  return el("tr", attributes, cells.map((cell, at) => (at === 0
    ? el("th", { scope: "row" }, cell)
    : el("td", { "data-label": heads[at] }, cell))));
}
