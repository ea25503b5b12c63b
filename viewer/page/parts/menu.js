// Small menus: at a button, or where the pointer is.

import { el } from "./dom.js";

/** @typedef {[string, () => void] | null} MenuItem  null is a line between groups */

/** @param {MenuItem[]} items @param {() => void} close */
function menuList(items, close) {
  const buttons = items.map((item) =>
    item === null
      ? el("hr")
      : el(
          "button",
          {
            type: "button",
            role: "menuitem",
            onclick: () => {
              close();
              item[1]();
            },
          },
          item[0],
        ),
  );
  const list = el(
    "div.popup",
    {
      role: "menu",
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const active = buttons.filter((b) => b.tagName === "BUTTON");
        const at = active.indexOf(document.activeElement);
        if (event.key === "ArrowDown") active[(at + 1) % active.length].focus();
        else if (event.key === "ArrowUp") active[(at - 1 + active.length) % active.length].focus();
        else if (event.key === "Escape") close();
        else return;
        event.preventDefault();
        event.stopPropagation();
      },
    },
    ...buttons,
  );
  return list;
}

/** @param {HTMLElement} host @param {MenuItem[]} items @param {{x: number, y: number} | null} at */
function openMenu(host, items, at) {
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  const close = () => {
    list.remove();
    removeEventListener("pointerdown", outside, true);
    before?.focus?.();
  };
  const outside = (/** @type {Event} */ event) => {
    if (!list.contains(/** @type {Node} */ (event.target))) close();
  };
  const list = menuList(items, close);
  host.append(list);
  if (at) {
    const box = list.getBoundingClientRect();
    list.style.setProperty("position", "fixed");
    list.style.setProperty("right", "auto");
    list.style.setProperty("left", `${Math.max(4, Math.min(at.x, innerWidth - box.width - 8))}px`);
    list.style.setProperty("top", `${Math.max(4, Math.min(at.y, innerHeight - box.height - 8))}px`);
  }
  list.querySelector("button")?.focus();
  addEventListener("pointerdown", outside, true);
}

/** @param {number} x @param {number} y @param {MenuItem[]} items */
export function menuAt(x, y, items) {
  openMenu(document.body, items, { x, y });
}

/** @param {string} text @param {string} title @param {() => MenuItem[]} items @param {string} [look] */
export function menuButton(text, title, items, look = "button.icon") {
  const anchor = el("span.anchor");
  anchor.append(
    el(
      look,
      {
        type: "button",
        title,
        "aria-label": title,
        "aria-haspopup": "menu",
        onclick: () => {
          if (!anchor.querySelector(".popup")) openMenu(anchor, items(), null);
        },
      },
      text,
    ),
  );
  return anchor;
}
