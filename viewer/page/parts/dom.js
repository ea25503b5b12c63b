// Making elements. Text only ever becomes a text node, so that a name out of a recording can never be
// read as markup; there is no way to pass HTML here.

/**
 * @typedef {string | number | Node | null | undefined | false} Child
 * @typedef {Record<string, any>} Props  attributes; `on…` are listeners, `class` and `style` as usual
 */

/**
 * A new element: el('button.small', {type: 'button', onclick: f}, 'Text', child…)
 * @param {string} what  tag with .classes
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {any}
 */
export function el(what, props, ...children) {
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  for (const [key, value] of Object.entries(props ?? {})) setProp(node, key, value);
  append(node, children);
  return node;
}

/** @param {HTMLElement} node @param {string} key @param {any} value */
function setProp(node, key, value) {
  if (value === undefined || value === null || value === false) return;
  if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
  else if (key === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, String(v));
  else if (value === true) node.setAttribute(key, "");
  else node.setAttribute(key, String(value));
}

/** @param {Node} node @param {Child[]} children */
export function append(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    node.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Put these in place of whatever is in the node. @param {Element} node @param {...Child} children */
export function fill(node, ...children) {
  node.replaceChildren();
  append(node, children);
}

/** The element with this id, which must exist. @param {string} id @returns {any} */
export function byId(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`no element #${id}`);
  return node;
}

/** Call `f` at most once per picture. @param {() => void} f @returns {() => void} */
export function oncePerFrame(f) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      f();
    });
  };
}

/** A labelled choice. @param {string} label @param {[string, string, string?][]} options value, text and heading
 * @param {string} value @param {(value: string) => void} change */
export function choice(label, options, value, change) {
  const select = el("select", { "aria-label": label, onchange: () => change(select.value) });
  /** @type {any} */
  let group = select;
  for (const [v, text, heading = ""] of options) {
    if (heading !== (group.label ?? "")) {
      group = heading ? el("optgroup", { label: heading }) : select;
      if (heading) select.append(group);
    }
    group.append(el("option", { value: v }, text));
  }
  select.value = value;
  return el("label.choice", null, el("span", null, label), select);
}

/** A button that is on or off. @param {string} text @param {boolean} on @param {(on: boolean) => void} change
 * @param {string} [title] */
export function toggle(text, on, change, title) {
  const button = el(
    "button.toggle",
    {
      type: "button",
      "aria-pressed": on ? "true" : "false",
      title,
      onclick: () => change(button.getAttribute("aria-pressed") !== "true"),
    },
    text,
  );
  return button;
}

/** Exactly one of several. @param {string} label @param {[string, string][]} options @param {string} value
 * @param {(value: string) => void} change */
export function segments(label, options, value, change) {
  return el(
    "div.segments",
    { role: "group", "aria-label": label },
    ...options.map(([v, text]) =>
      el(
        "button",
        {
          type: "button",
          "aria-pressed": v === value ? "true" : "false",
          onclick: () => change(v),
        },
        text,
      ),
    ),
  );
}
