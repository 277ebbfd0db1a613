// Tables that can be sorted and searched; long ones begin with their first rows.
"use strict";

const kFirstRows = 15;

// columns: [{label, class, key: (item) => number or text to sort by, cell: (item) => node or text, least: whether the
// first click sorts from the least}]; `text` is what a search looks through. The order of `items` is the first one.
function sortableTable(columns, items, text) {
  const body = el("tbody");
  const rest = el("button", {
    class: "rest",
    type: "button",
    onclick: () => {
      all = true;
      fill();
    },
  });
  let all = false,
    wanted = "",
    sorted = null;

  const fill = () => {
    const found = items.filter((item) => text(item).toLowerCase().includes(wanted));
    if (sorted) {
      const { key } = sorted.column,
        sign = sorted.up ? 1 : -1;
      found.sort((a, b) => sign * (typeof key(a) === "string" ? key(a).localeCompare(key(b)) : key(a) - key(b)));
    }
    const shown = all ? found : found.slice(0, kFirstRows);
    body.replaceChildren(
      ...shown.map((item) =>
        el(
          "tr",
          {},
          columns.map((column) => el("td", { class: column.class }, column.cell(item))),
        ),
      ),
    );
    if (!found.length)
      body.append(el("tr", {}, el("td", { class: "soft", colspan: columns.length }, "nothing has such a name")));
    rest.hidden = shown.length === found.length;
    rest.textContent = `Show all ${count(found.length)}`;
  };

  const heads = columns.map((column) => {
    const head = el(
      "th",
      { scope: "col", class: column.class === "number" ? "number" : "" },
      column.key ? el("button", { type: "button", onclick: () => sortBy(column, head) }, column.label) : column.label,
    );
    return head;
  });
  const sortBy = (column, head) => {
    const up = sorted && sorted.column === column ? !sorted.up : Boolean(column.least);
    sorted = { column, up };
    for (const each of heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    fill();
  };
  const search = el("input", {
    type: "search",
    placeholder: "Search",
    "aria-label": "Search this table",
    oninput: (event) => {
      wanted = event.target.value.trim().toLowerCase();
      fill();
    },
  });
  fill();
  return el(
    "div",
    { class: "card table" },
    items.length > kFirstRows ? search : "",
    el(
      "div",
      { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table" },
      el("table", {}, el("thead", {}, el("tr", {}, heads)), body),
    ),
    rest,
  );
}

// A bar beside a number: its part of the greatest.
function partBar(ratio, top, title, color) {
  return el("div", { title, style: { width: (100 * ratio) / top + "%", background: color } });
}
