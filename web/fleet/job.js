// The page of one job: a waterfall from what was paid to useful work, its runs, and what it asked for.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const runOf = (number) => data.runs[number - 1];
const partOf = (ns) => (data.paid_ns > 0 ? ns / data.paid_ns : 0);

// A job of less than an hour is told in minutes and seconds.
const isShort = data.paid_ns < kHourNs;
const when = (unixNs) => moment(unixNs, isShort);
const time = (ns) => (isShort ? duration(ns) : `${hours(ns)} h`);

function whose() {
  const parts = [data.name, data.user, data.account, data.partition].filter(Boolean);
  return [data.job ? `job ${data.job}` : `run ${data.runs.at(-1).id}`, ...parts].join(", ");
}

// ---- the top ---------------------------------------------------------------------------------------------------

const nsOf = (kind) => data.bars.reduce((sum, bar) => sum + (bar.kind === kind ? bar.device_ns : 0), 0);

function title(notJudged) {
  const paid = isShort ? `${time(data.paid_ns)} of device time` : `${hoursOf(data.paid_ns)} that were paid`;
  if (notJudged === 1) return `What became of ${paid} cannot be told`;
  const useful = isShort ? time(data.useful_ns) : hours(data.useful_ns);
  return `${useful} of ${paid} became useful work (${percent(partOf(data.useful_ns))})`;
}

function verdict() {
  const known = data.bars.filter((bar) => !["work", "not judged"].includes(bar.kind));
  const [largest] = known.sort((a, b) => b.device_ns - a.device_ns);
  const share = partOf(data.useful_ns),
    notJudged = partOf(nsOf("not judged"));
  const tone = notJudged > 0.5 ? "none" : share >= 0.8 ? "" : share >= 0.5 ? "warning" : "critical";
  return el(
    "section",
    { class: `card verdict ${tone}` },
    el("h1", {}, title(notJudged)),
    largest ? el("p", {}, `Most of the rest: ${largest.says}, ${time(largest.device_ns)}.`) : "",
    notJudged > 0 && notJudged < 1
      ? el("p", { class: "soft" }, `${time(nsOf("not judged"))} could not be judged.`)
      : "",
  );
}

function figures() {
  const machines = new Set(data.runs.flatMap((run) => run.machines));
  return el(
    "section",
    { class: "card figures" },
    figure("From", when(data.begin_unix_ns)),
    figure(data.goes_on ? "Until now" : "To", when(data.end_unix_ns)),
    figure("Runs", count(data.runs.length)),
    data.restarts ? figure("Restarts", count(data.restarts)) : "",
    figure("Devices", `${count(Math.max(...data.runs.map((run) => run.devices)))} × ${data.device}`),
    machines.size ? figure(machines.size === 1 ? "Machine" : "Machines", machineNames(machines)) : "",
  );
}

function machineNames(machines) {
  const names = [...machines];
  return names.length > 4 ? count(names.length) : names.join(", ");
}

// ---- the waterfall ---------------------------------------------------------------------------------------------

function row(says, ns, from, to, color, kind) {
  return el(
    "span",
    { class: `fall ${kind}` },
    el("span", { class: "says" }, says),
    el("span", { class: "hours" }, isShort ? duration(ns) : hours(ns)),
    el("span", { class: "share" }, percent(partOf(ns))),
    track(from, to, color),
  );
}

function ofRuns(bar) {
  return el(
    "ul",
    { class: "of" },
    bar.runs.map((of) =>
      el(
        "li",
        {},
        el("span", {}, `${of.number}  ${runOf(of.number).id}`),
        el("span", {}, `${time(of.device_ns)}, ${percent(bar.device_ns ? of.device_ns / bar.device_ns : 0)} of it`),
      ),
    ),
  );
}

function waterfall() {
  let height = 1;
  const bars = data.bars.map((bar) => {
    const below = height - partOf(bar.device_ns);
    const line = row(bar.says, bar.device_ns, below, height, colorOf(bar.kind), bar.kind === "work" ? "work" : "");
    height = below;
    return el("li", {}, el("details", {}, el("summary", {}, line), ofRuns(bar)));
  });
  return el(
    "section",
    { id: "waterfall" },
    el(
      "h2",
      {},
      "From paid to useful",
      el("small", {}, `${isShort ? "device time" : "device hours"}; each bar opens to the runs that it comes from`),
    ),
    el("ul", { class: "card falls" }, el("li", {}, row("paid", data.paid_ns, 0, 1, "var(--ink)", "sum")), bars),
  );
}

// ---- runs ------------------------------------------------------------------------------------------------------

function runsOverTime() {
  const whole = Math.max(1, data.end_unix_ns - data.begin_unix_ns);
  const place = (unixNs) => (unixNs - data.begin_unix_ns) / whole;
  return el(
    "div",
    { class: "card when" },
    data.runs.map((run) =>
      el(
        "div",
        {},
        el("span", { class: "soft" }, run.number),
        track(place(run.begin_unix_ns), place(run.end_unix_ns), run.badly ? "var(--bad)" : "var(--s1)"),
      ),
    ),
    el(
      "div",
      {},
      el("span", { class: "ends" }, el("span", {}, when(data.begin_unix_ns)), el("span", {}, when(data.end_unix_ns))),
    ),
  );
}

function usefulOf(run) {
  const work = data.bars.find((bar) => bar.kind === "work");
  const own = work && work.runs.find((of) => of.number === run.number);
  return own && run.given_ns ? own.device_ns / run.given_ns : 0;
}

function runsTable() {
  const number = (label, key, cell, least) => ({ label, class: "number", least, key, cell });
  const columns = [
    number(
      "#",
      (run) => run.number,
      (run) => run.number,
      true,
    ),
    { label: "run", class: "run", least: true, key: (run) => run.id, cell: nameOf },
    {
      label: "began",
      class: "when",
      least: true,
      key: (run) => run.begin_unix_ns,
      cell: (run) => when(run.begin_unix_ns),
    },
    number(
      "lasted",
      (run) => run.end_unix_ns - run.begin_unix_ns,
      (run) => duration(run.end_unix_ns - run.begin_unix_ns),
    ),
    number(
      "devices",
      (run) => run.devices,
      (run) => count(run.devices),
    ),
    number("useful", usefulOf, (run) => percent(usefulOf(run))),
    { label: "how it ended", least: true, key: (run) => run.how, cell: (run) => ended(run) },
    { label: "what binds it", class: "says", key: (run) => run.verdict, cell: (run) => run.verdict },
  ];
  return sortableTable(columns, data.runs, (run) => `${run.id} ${run.machines.join(" ")} ${run.verdict}`);
}

function nameOf(run) {
  return el("div", {}, run.id, el("small", {}, run.path));
}

function ended(run) {
  return run.badly ? el("b", { class: "bad" }, run.how) : run.how;
}

function runs() {
  return el(
    "section",
    { id: "runs" },
    el("h2", {}, "Its runs", data.runs.some((run) => run.badly) ? el("small", {}, "red: ended badly") : ""),
    data.runs.length > 1 ? runsOverTime() : "",
    el("div", { class: "after" }, runsTable()),
  );
}

function asked() {
  if (!data.asked.length) return "";
  const cells = (row) => [row.what, row.given, row.used].map((text) => el("td", {}, text));
  return el(
    "section",
    { id: "asked" },
    el("h2", {}, "Asked for and used"),
    el(
      "div",
      { class: "card scroll", tabindex: 0, role: "group", "aria-label": "Asked for and used" },
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["", "given", "used"].map((text) => (text ? el("th", { scope: "col" }, text) : el("td", {}))),
          ),
        ),
        el(
          "tbody",
          {},
          data.asked.map((row) => el("tr", {}, cells(row))),
        ),
      ),
    ),
  );
}

startTheme(() => {});
document
  .getElementById("page")
  .replaceChildren(
    ...[
      topLine("fullbore fleet job", whose()),
      verdict(),
      figures(),
      waterfall(),
      runs(),
      asked(),
      notesCard(data.notes),
      el(
        "footer",
        {},
        "Written by fullbore fleet job. Paid is what the runs were given, and the time between them within one ",
        "allocation; the bars add up to it. Each run's own report: ",
        el("code", {}, "fullbore explain RUN"),
        ".",
      ),
    ].filter(Boolean),
  );
