// The list of runs: what is typed and chosen is in the address, so that it can be kept and sent.
"use strict";

const kPage = 200;
const columns = [
  { key: "name", label: "Run" },
  { key: "", label: "State" },
  { key: "begin", label: "Begun (UTC)", less: true, number: true },
  { key: "duration", label: "Lasted", less: true, number: true },
  { key: "throughput", label: "Throughput", number: true },
  { key: "", label: "Over time", less: true },
  { key: "waste", label: "Waste", number: true },
  { key: "", label: "Verdict" },
];
const parameters = new URLSearchParams(location.search);
const state = {
  q: parameters.get("q") || "",
  sort: parameters.get("sort") || "-begin",
  group: parameters.get("group") || "",
  limit: kPage,
};
const chosen = new Set();

function sparkline(values) {
  if (values.length < 2) return "";
  const top = Math.max(...values) || 1;
  const path = values
    .map(
      (value, i) =>
        `${i ? "L" : "M"}${((i / (values.length - 1)) * 94 + 1).toFixed(1)},${(22 - (value / top) * 20).toFixed(1)}`,
    )
    .join("");
  return svg(
    "svg",
    {
      class: "spark",
      viewBox: "0 0 96 24",
      role: "img",
      "aria-label": `steps per second, from ${count(values[0])} to ${count(values.at(-1))}`,
    },
    svg("path", { d: path }),
  );
}

function row(run) {
  const judged = run.judgement || {};
  const box = el("input", {
    type: "checkbox",
    "aria-label": "Compare " + run.name,
    onchange: (event) => {
      if (event.target.checked) chosen.add(run.name);
      else chosen.delete(run.name);
      showCompare();
    },
  });
  box.checked = chosen.has(run.name);
  return el(
    "tr",
    {},
    el("td", {}, box),
    el(
      "td",
      { class: "run" },
      runLink(run.name),
      el("span", { class: "command" }, run.command),
      tagList(run.tags),
      run.note ? el("div", { class: "soft" }, run.note) : "",
    ),
    el("td", {}, stateOf(run)),
    el("td", { class: "number less" }, utc(run.begin_unix_ns)),
    el("td", { class: "number less" }, duration(run.duration_ns)),
    el("td", { class: "number" }, rateText(judged)),
    el("td", { class: "less" }, sparkline(judged.sparkline || [])),
    el("td", { class: "number" }, judged.waste ? percent(judged.waste) : ""),
    el("td", { class: "says" }, judged.verdict || (run.judgement ? "" : "not judged yet")),
  );
}

// By a tag ("tag:lr") or by command; groups in the order of their first run.
function groupsOf(runs) {
  const keyOf = (run) =>
    state.group === "command" ? run.command : (run.tags[state.group.slice(4)] ?? "without " + state.group);
  const groups = new Map();
  for (const run of runs) groups.set(keyOf(run), [...(groups.get(keyOf(run)) || []), run]);
  return groups;
}

function heading(column) {
  const sorted = state.sort.replace("-", "") === column.key;
  const order = sorted ? (state.sort.startsWith("-") ? "descending" : "ascending") : null;
  const text = column.key
    ? el(
        "button",
        {
          class: "plain",
          type: "button",
          onclick: () => change({ sort: state.sort === "-" + column.key ? column.key : "-" + column.key }),
        },
        column.label,
      )
    : column.label;
  return el(
    "th",
    { scope: "col", class: (column.number ? "number " : "") + (column.less ? "less" : ""), "aria-sort": order },
    text,
  );
}

const query = el("input", {
  type: "search",
  value: state.q,
  "aria-label": "Filter runs",
  placeholder: "state:running finding:input-bound tag:lr=3e-4",
});
const group = el("select", { "aria-label": "Group", onchange: () => change({ group: group.value }) });
const compare = el("button", {
  type: "button",
  class: "primary",
  onclick: () => {
    location.href = "/compare?runs=" + [...chosen].map(encodeURIComponent).join(",");
  },
});
const found = el("span", { class: "soft", role: "status" });
const table = el("table");
const more = el(
  "button",
  { type: "button", hidden: "", onclick: () => change({ limit: state.limit + kPage }) },
  "More",
);

function showCompare() {
  compare.textContent = `Compare ${chosen.size || ""}`.trim();
  compare.disabled = chosen.size < 2 || chosen.size > 8;
}

function showGroups(runs) {
  const keys = [...new Set(runs.flatMap((run) => Object.keys(run.tags)))].sort();
  const options = [["", "not grouped"], ["command", "by command"], ...keys.map((key) => ["tag:" + key, "by " + key])];
  if (!options.some(([value]) => value === state.group)) options.push([state.group, state.group]);
  group.replaceChildren(
    ...options.map(([value, text]) => el("option", { value, selected: value === state.group ? "" : null }, text)),
  );
}

let asked = 0;

// What was asked for later may be answered first: only the last answer counts.
async function refresh() {
  const mine = ++asked;
  const wanted = new URLSearchParams({ q: state.q, sort: state.sort, limit: state.limit });
  try {
    const { total, runs } = await ask("/api/v1/runs?" + wanted);
    if (mine !== asked) return;
    found.textContent = total === 1 ? "1 run" : `${count(total)} runs`;
    showGroups(runs);
    const rows = state.group
      ? [...groupsOf(runs)].flatMap(([key, of]) => [
          el("tr", { class: "group" }, el("td", { colspan: columns.length + 1 }, `${key} (${of.length})`)),
          ...of.map(row),
        ])
      : runs.map(row);
    const focused = document.activeElement && document.activeElement.getAttribute("aria-label");
    table.replaceChildren(el("thead", {}, el("tr", {}, el("td"), columns.map(heading))), el("tbody", {}, rows));
    if (focused && !document.contains(document.activeElement))
      document.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
    more.hidden = total <= runs.length;
    if (!total && !state.q) found.textContent = "no runs yet: fullbore run -- python train.py";
  } catch (error) {
    if (mine === asked) found.textContent = String(error.message);
  }
}

function change(what) {
  Object.assign(state, what);
  const kept = Object.entries({
    q: state.q,
    sort: state.sort === "-begin" ? "" : state.sort,
    group: state.group,
  }).filter(([, value]) => value);
  history.replaceState(null, "", kept.length ? "?" + new URLSearchParams(kept) : "/");
  refresh();
}

let typing = 0;
query.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => change({ q: query.value, limit: kPage }), 150);
});
startTheme(() => {});
navigate("/");
showCompare();
document
  .getElementById("page")
  .append(
    el("h1", { class: "hidden" }, "Runs"),
    el("div", { class: "find" }, query, group, compare, found),
    el("div", { class: "card scroll runs" }, table),
    more,
  );
refresh();
setInterval(() => {
  if (!document.hidden) refresh();
}, 10_000);
