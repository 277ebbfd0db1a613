// Two to eight runs beside each other: the table of `fullbore compare --html`.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

function head(title) {
  return el(
    "tr",
    {},
    el("th", { scope: "col" }, title),
    data.runs.map((run) => el("th", { scope: "col" }, run)),
  );
}

function line(label, cells) {
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, label),
    cells.map((cell) => el("td", {}, cell)),
  );
}

function section({ title, rows }) {
  return el(
    "section",
    {},
    el("h2", {}, title[0].toUpperCase() + title.slice(1)),
    el(
      "div",
      { class: "card scroll", tabindex: "0", role: "group", "aria-label": title },
      el(
        "table",
        { class: "compared" },
        el("thead", {}, head("")),
        el(
          "tbody",
          {},
          title === "speed"
            ? line(
                "where it goes",
                data.shares.map((shares) => shareBar(data.palette, shares, true)),
              )
            : "",
          rows.map((row) => line(title.startsWith("shares") ? row.label.replaceAll("_", " ") : row.label, row.cells)),
        ),
      ),
    ),
  );
}

startTheme(() => {});
paletteStyle(data.palette);
document
  .getElementById("page")
  .replaceChildren(
    el("div", { class: "top" }, el("span", { class: "name" }, "fullbore compare"), themeButton()),
    el("h1", {}, `${data.runs.length} runs compared with the first`),
    ...data.sections.map(section),
    el(
      "footer",
      {},
      "Written by fullbore compare. Intervals hold at 95 %; what lies within them is called within the noise.",
    ),
  );
