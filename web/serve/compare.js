// Two to eight runs: what differs, side by side, and their curves over the number of the step on one axis.
"use strict";

const kCurveColors = [
  "var(--s1)",
  "var(--s2)",
  "var(--s3)",
  "var(--s4)",
  "var(--s5)",
  "var(--s6)",
  "var(--bad)",
  "var(--ink)",
];

function head(runs) {
  return el(
    "tr",
    {},
    el("td"),
    runs.map((run, i) =>
      el(
        "th",
        { scope: "col" },
        el("span", { class: "swatch", style: { background: kCurveColors[i] } }),
        " ",
        runLink(run.name),
      ),
    ),
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

function section(title, node) {
  return el("section", {}, el("h2", {}, title), el("div", { class: "card scroll runs compare" }, node));
}

// "1.42x (1.38x to 1.46x)", and whether that is more than noise.
function gainOf(comparison) {
  if (!comparison.rate.before || !comparison.rate.after) return "";
  const range = comparison.speedup_ci95
    ? ` (${comparison.speedup_ci95.map((each) => each.toFixed(2) + "x").join(" to ")})`
    : "";
  return (
    comparison.speedup.toFixed(2) +
    "x" +
    range +
    (comparison.significant ? "" : comparison.speedup_ci95 ? ", within the noise" : ", too few steps to tell")
  );
}

function overview(answer) {
  const { runs, against_first: against } = answer;
  return el(
    "table",
    {},
    el("thead", {}, head(runs)),
    el(
      "tbody",
      {},
      line(
        "throughput",
        runs.map((run) => (run.report.throughput ? rateText(run.report.throughput) : "")),
      ),
      line(
        "tokens",
        runs.map((run) => tokensText(run.report.throughput || {})),
      ),
      line(
        "against the first",
        runs.map((run, i) => (i ? gainOf(against[i - 1]) : "")),
      ),
      line(
        "a step",
        runs.map((run) => (run.report.step_time ? duration(run.report.step_time.mean_ns) : "")),
      ),
      line(
        "where it goes",
        runs.map((run) => (run.report.step_time ? shareBar(palette, run.report.step_time.shares, true) : "")),
      ),
      line(
        "verdict",
        runs.map((run) =>
          run.report.judgeable === false
            ? "cannot be judged"
            : run.report.findings.length
              ? run.report.findings[0].title
              : "nothing to gain was found",
        ),
      ),
      line(
        "command",
        runs.map((run) => el("span", { class: "command" }, run.about.command)),
      ),
      line(
        "tags",
        runs.map((run) => el("span", {}, tagList(run.about.tags))),
      ),
    ),
  );
}

// Facts and arguments that are not the same in all runs.
function differences(runs) {
  const of = (run) => ({ ...run.report.facts, ...run.report.machine });
  const text = (value) => (value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value));
  const names = [...new Set(runs.flatMap((run) => Object.keys(of(run))))]
    .sort()
    .filter((name) => new Set(runs.map((run) => text(of(run)[name]))).size > 1);
  if (!names.length) return el("p", { class: "about soft" }, "Every recorded fact is the same.");
  return el(
    "table",
    {},
    el("thead", {}, head(runs)),
    el(
      "tbody",
      {},
      names.map((name) =>
        line(
          name.replaceAll("_", " "),
          runs.map((run) => text(of(run)[name])),
        ),
      ),
    ),
  );
}

// An axis of step numbers instead of time.
class StepAxis extends TimeAxis {
  ticks(most) {
    const [begin, end] = this.view;
    const step = Math.max(1, niceAbove((end - begin) / most));
    const ticks = [];
    for (let at = Math.ceil(begin / step) * step; at <= end; at += step) ticks.push(at);
    return { ticks, step };
  }
  label(at) {
    return count(Math.round(at));
  }
}

// What the scripts log themselves, by the numbers of the steps that they give: a metric of all runs in one panel.
function loggedCurves(runs) {
  const names = [...new Set(runs.flatMap((run) => run.curve.logged.map((each) => each.name)))];
  return names.slice(0, kLoggedPanels).map((name, index) => ({
    id: "logged-" + index,
    title: `${name}, logged by the script at steps of its own`,
    unit: "",
    fits: true,
    text: fourDigits,
    height: 200,
    lines: runs.flatMap((run, i) =>
      run.curve.logged
        .filter((each) => each.name === name)
        .map((each) => ({
          label: run.name,
          color: kCurveColors[i],
          t: each.step,
          v: each.value,
          key: run.name,
          unbroken: true,
        })),
    ),
  }));
}

function lastStep(run) {
  return Math.max(0, ...run.curve.step, ...run.curve.logged.flatMap((each) => each.step));
}

function curves(runs) {
  const axis = new StepAxis(Math.max(1, ...runs.map(lastStep)), 1);
  const lines = (column, factor) =>
    runs
      .map((run, i) => ({
        label: run.name,
        color: kCurveColors[i],
        t: run.curve.step,
        v: run.curve[column].map((value) => value * factor),
        key: run.name,
      }))
      .filter((each) => each.t.length > 1);
  const units = [...new Set(runs.filter((run) => run.curve.step.length).map((run) => run.curve.unit))];
  const specs = [];
  if (units.length === 1)
    specs.push({
      id: "rate",
      title: "Throughput over the steps",
      unit: units[0],
      height: 200,
      lines: lines("rate", 1),
    });
  specs.push({ id: "step", title: "Step time over the steps", unit: "ns", height: 200, lines: lines("step_ms", 1e6) });
  specs.push(...loggedCurves(runs));
  const box = el(
    "div",
    { class: "card panels" },
    specs.filter((spec) => spec.lines.length).map((spec) => new Panel(axis, spec).node),
  );
  return { box, axis };
}

let palette = [];
let drawn = null;

async function show() {
  const names = new URLSearchParams(location.search).get("runs") || "";
  palette = await ask("/assets/palette.json");
  paletteStyle(palette);
  const answer = await ask("/api/v1/compare?runs=" + names.split(",").map(encodeURIComponent).join(","));
  const { box, axis: steps } = curves(answer.runs);
  drawn = steps;
  document
    .getElementById("page")
    .append(
      el("h1", {}, `${answer.runs.length} runs compared`),
      section("Throughput and verdict", overview(answer)),
      el("section", {}, el("h2", {}, "Curves"), box),
      section("What differs", differences(answer.runs)),
    );
  steps.draw();
}

addEventListener("resize", () => {
  if (drawn) drawn.draw();
});
navigate("/compare");
show().catch(complain);
