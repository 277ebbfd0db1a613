// Rules, what fires now, and what has.
"use strict";

function listOf(title, items, none) {
  const rows = items.map((each) => el("tr", {}, Object.entries(each).map(([name, value]) =>
    el("td", { title: name }, typeof value === "object" ? JSON.stringify(value) : String(value)))));
  return el("section", {}, el("h2", {}, title), el("div", { class: "card scroll runs" }, rows.length ? el("table", {}, rows) : el("p", { class: "about soft" }, none)));
}

async function show() {
  const { rules, firing, history } = await ask("/api/v1/alerts");
  document.getElementById("page").replaceChildren(el("h1", { class: "hidden" }, "Alerts"), listOf("Firing now", firing, "Nothing fires."),
    listOf("Rules", rules, "This server has no rules."), listOf("History", history, "Nothing has fired."));
}

startTheme(() => {});
navigate("/alerts");
show().catch(complain);
setInterval(() => { if (!document.hidden) show().catch(complain); }, 10_000);
