// The page of an answer of `fullbore tune`: what to change, and what was measured.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const panels = [];
for (const each of [...data.settings, ...data.trials]) each.rate = rateOf(each);
const measured = data.settings.filter((each) => each.rate);
const before = measured.find((each) => each.baseline),
  after = measured.find((each) => each.recommended);

function rateOf(trial) {
  const mean = trial.samples_per_s ?? trial.steps_per_s ?? trial.useful_tokens_per_s ?? null;
  return mean === null ? undefined : { mean, low: trial.ci95[0], high: trial.ci95[1] };
}

const ratesText = (rate) => `${count(rate.mean)} ±${count((rate.high - rate.low) / 2)}`;
const withUnit = (rate) => `${ratesText(rate)} ${data.unit}`;
const timesText = (ratio) => ratio.toFixed(2) + "×";

// All that is known of a setting, in a sentence: what a chart says at its point.
function saysOf(tried) {
  if (!tried.rate) return `${tried.setting}: ${tried.outcome}${tried.why ? ", " + tried.why : ""}`;
  return [
    `${tried.setting}: ${withUnit(tried.rate)}`,
    tried.predicted === null ? "" : `predicted ${count(tried.predicted)}`,
    tried.peak_memory_bytes === null ? "" : bytes(tried.peak_memory_bytes),
    tried.cut_short ? "ended early: too slow" : "",
    markOf(tried),
  ]
    .filter(Boolean)
    .join(", ");
}

function markOf(tried) {
  return tried.recommended ? "recommended" : tried.baseline ? "as it was" : "";
}

function pointOf(tried, x) {
  const { mean: y, low, high } = tried.rate || {};
  return {
    x,
    y,
    low,
    high,
    hollow: tried.cut_short,
    mark: markOf(tried),
    below: !tried.recommended,
    says: saysOf(tried),
  };
}

// ---- the top ---------------------------------------------------------------------------------------------------

function topLine() {
  return el(
    "div",
    { class: "top" },
    el("span", { class: "name" }, "fullbore tune"),
    el("span", { class: "run command" }, data.command),
    themeButton(),
  );
}

function failed() {
  const why = data.reason || data.trials.map((trial) => trial.why).find(Boolean);
  const title = measured.length ? "Nothing that was measured can be recommended" : "Nothing could be measured";
  return el(
    "section",
    { class: "card verdict critical" },
    el("h1", {}, title),
    why ? el("p", { class: "wrap" }, why) : "",
  );
}

// The command with the setting in it, the lines of the script, or both.
function whatToDo(advice) {
  const box = (label, nodes) =>
    el("div", {}, el("div", { class: "label" }, label), el("div", { class: "lines" }, nodes));
  return [
    advice.command ? box("Run it as", el("code", { class: "change" }, advice.command)) : "",
    advice.lines.length
      ? box(
          "Change in the script",
          advice.lines.map((line) =>
            el(
              "div",
              {},
              el("code", { class: "change" }, line.code),
              line.where ? el("span", { class: "soft wrap" }, " at ", el("code", {}, line.where)) : "",
            ),
          ),
        )
      : "",
  ];
}

function gainBox(gain) {
  const isSure = gain.low > 1,
    low = timesText(gain.low),
    high = timesText(gain.high);
  const range = low === high ? "" : `${low} to ${high}: `;
  const rates = `${count(before.rate.mean)} → ${count(after.rate.mean)} ${data.unit}`;
  return el(
    "div",
    {},
    el("div", { class: "label" }, "Measured gain"),
    el("div", { class: isSure ? "gain" : "gain plain" }, timesText(gain.expected), el("small", {}, range + rates)),
    isSure
      ? ""
      : el("p", { class: "soft unsure" }, "Not more than the noise: it is recommended because it takes less."),
  );
}

// What stands behind the answer: proven, refuted, not proven.
function grounds() {
  return [...data.grounds, ...data.larger_batch, data.unlike_the_run]
    .filter(Boolean)
    .map((ground) => el("p", { class: "soft wrap" }, ground));
}

function verdict() {
  if (!after) return failed();
  const { advice } = data;
  if (after === before) {
    return el(
      "section",
      { class: "card verdict none" },
      el("h1", {}, "The script as it is: nothing that was tried is proven to be better"),
      el("p", { class: "soft" }, withUnit(after.rate)),
      grounds(),
    );
  }
  const title =
    advice.gain && advice.gain.low > 1
      ? `${after.setting} is ${timesText(advice.gain.expected)} as fast`
      : `${after.setting} is recommended`;
  return el(
    "section",
    { class: "card verdict" },
    el("h1", {}, title),
    el("div", { class: "answer" }, whatToDo(advice), before ? gainBox(advice.gain) : ""),
    grounds(),
    advice.changes.map((change) => el("p", { class: "changes" }, "May change training results. " + change)),
    el("details", { class: "more" }, el("summary", {}, "Without an edit"), el("code", {}, advice.without_edit)),
    advice.patch
      ? el(
          "details",
          { class: "more" },
          el("summary", {}, "As a diff"),
          el("pre", { class: "text-report", tabindex: 0 }, advice.patch),
        )
      : "",
  );
}

function figuresSection() {
  const figure = (label, value) =>
    el("div", {}, el("div", { class: "label" }, label), el("div", { class: "value" }, value));
  const seconds = data.trials.reduce((sum, trial) => sum + trial.seconds, 0),
    { epoch } = data;
  const memory = (tried) => (tried.peak_memory_bytes === null ? "" : `, ${bytes(tried.peak_memory_bytes)}`);
  const price = (value) => String(Number(value.toPrecision(3)));
  return el(
    "section",
    { class: "card figures" },
    before ? figure("As it was", withUnit(before.rate) + memory(before)) : "",
    after && after !== before ? figure("Recommended", withUnit(after.rate) + memory(after)) : "",
    epoch
      ? figure(
          `Price of an epoch of ${count(epoch.samples)} samples`,
          after === before ? price(epoch.before) : `${price(epoch.before)} → ${price(epoch.after)}`,
        )
      : "",
    figure("Trials", `${count(data.trials.length)} in ${duration(seconds * 1e9)}`),
  );
}

// ---- charts ----------------------------------------------------------------------------------------------------

function chart(axis, spec) {
  const panel = new PointPanel(axis, spec);
  panels.push(panel);
  return panel.node;
}

const highest = (tried) => Math.max(tried.rate.mean, tried.rate.high);

// The lines that come highest have colours; of many, the others share one.
function linesOf(curve, place) {
  const all = curve.lines.map((line) => ({
    label: line.others || "all else as it is",
    part: line.points.map(([x, i]) => pointOf(data.settings[i], place(x))),
  }));
  const failed = all.flatMap((line) => line.part.filter((point) => point.y === undefined));
  const lines = all
    .map((line) => ({ ...line, part: line.part.filter((point) => point.y !== undefined) }))
    .filter((line) => line.part.length);
  for (const line of lines) line.top = Math.max(...line.part.map((point) => point.y));
  lines.sort((a, b) => b.top - a.top);
  const named = lines.length > kLineColors.length ? lines.slice(0, kLineColors.length - 1) : lines,
    others = lines.slice(named.length);
  const drawn = named.map((line, i) => ({
    label: line.label,
    color: kLineColors[i],
    shape: i,
    join: "line",
    parts: [line.part],
  }));
  if (others.length)
    drawn.push({
      label: `${others.length} others`,
      color: "var(--faint)",
      shape: 0,
      join: "line",
      parts: others.map((line) => line.part),
    });
  if (failed.length)
    drawn.push({ label: "could not be measured", color: "var(--bad)", shape: "cross", parts: [failed] });
  return drawn;
}

function curveChart() {
  const { curve } = data;
  const { axis, place } = valueAxis(
    curve.lines.flatMap((line) => line.points.map(([x]) => x)),
    curve.doubling,
  );
  return chart(axis, {
    id: "curve",
    title: `Throughput over ${curve.name}, ${data.unit}`,
    range: rangeOf(measured.map(highest)),
    lines: linesOf(curve, place),
    marks: before ? { mean: before.rate.mean, meanFrom: axis.view[0] } : {},
  });
}

function barRow(tried, top) {
  const part = (value) => (100 * Math.max(0, value)) / top + "%",
    { mean, low, high } = tried.rate;
  return el(
    "li",
    { class: tried.recommended ? "recommended" : "" },
    el(
      "div",
      { class: "name" },
      el("span", {}, tried.setting),
      el("span", {}, [withUnit(tried.rate), markOf(tried)].filter(Boolean).join(", ")),
    ),
    el(
      "div",
      { class: "track", "aria-hidden": "true" },
      el("div", { style: { width: part(mean) } }),
      high > low ? el("i", { style: { left: part(low), width: part(high - low) } }) : "",
    ),
  );
}

// Where nothing was varied in size.
function bars() {
  const top = Math.max(...measured.map(highest));
  return el(
    "section",
    { id: "settings" },
    el("h2", {}, "Throughput by setting", el("small", {}, "with 95 % intervals")),
    el(
      "ul",
      { class: "card bars" },
      measured.map((tried) => barRow(tried, top)),
    ),
  );
}

function predictedChart() {
  const drawn = measured.filter((each) => each.predicted !== null);
  if (!drawn.length) return "";
  const range = nearRangeOf(drawn.flatMap((each) => [each.predicted, each.rate.mean, each.rate.low, each.rate.high]));
  return chart(linearAxis(range), {
    id: "predicted",
    title: `Measured over predicted, ${data.unit}; on the dashed line, both are the same`,
    range,
    diagonal: true,
    lines: [{ label: "a setting", color: "var(--s1)", parts: [drawn.map((each) => pointOf(each, each.predicted))] }],
  });
}

function memoryChart() {
  const drawn = measured.filter((each) => each.peak_memory_bytes !== null);
  if (!drawn.length) return "";
  const points = (list) => list.map((each) => pointOf(each, each.peak_memory_bytes)).sort((a, b) => a.x - b.x);
  const front = drawn.filter((each) => each.front),
    others = drawn.filter((each) => !each.front);
  const lines = [{ label: "fastest for its memory", color: "var(--s1)", join: "steps", parts: [points(front)] }];
  if (others.length) lines.push({ label: "others", color: "var(--s2)", shape: 1, parts: [points(others)] });
  return chart(linearAxis(rangeOf(drawn.map((each) => each.peak_memory_bytes)), "bytes"), {
    id: "memory",
    title: `Throughput over peak memory, ${data.unit}`,
    range: rangeOf(drawn.map(highest)),
    lines,
  });
}

function chartsSection() {
  if (!measured.length) return [];
  const hollow = measured.some((each) => each.cut_short) ? "; a hollow point was ended early, as too slow" : "";
  const nodes = [data.curve ? curveChart() : "", predictedChart(), memoryChart()].filter(Boolean);
  const charts = nodes.length
    ? el(
        "section",
        { id: "charts" },
        el("h2", {}, "What was measured", el("small", {}, "with 95 % intervals" + hollow)),
        el("div", { class: "card panels" }, nodes),
      )
    : "";
  return [data.curve ? "" : bars(), charts].filter(Boolean);
}

// ---- tables ----------------------------------------------------------------------------------------------------

function outcomeText(trial) {
  const parts = [trial.cut_short ? "ended: too slow" : trial.outcome, trial.noisy && !trial.why ? "noisy" : ""]
    .filter(Boolean)
    .join(", ");
  return el(
    "div",
    {},
    trial.outcome === "ok" ? parts : el("b", {}, parts),
    trial.why ? el("span", { class: "soft" }, ": " + trial.why) : "",
  );
}

function badgeOf(trial) {
  const mark = [markOf(trial), trial.proves ? "proof" : ""].filter(Boolean).join(", ");
  return mark ? el("span", { class: trial.recommended ? "badge" : "badge before" }, mark) : "";
}

function trialsSection() {
  const known = (value, text) => (value === null || value === undefined ? "" : text(value));
  const order = (value) => value ?? -Infinity;
  const trials = data.trials.map((trial, i) => ({ ...trial, number: i + 1 }));
  const isKnown = (name) => trials.some((trial) => (trial[name] ?? null) !== null);
  const columns = [
    { label: "#", class: "number", least: true, key: (trial) => trial.number, cell: (trial) => trial.number },
    {
      label: "setting",
      class: "setting",
      least: true,
      key: (trial) => trial.setting,
      cell: (trial) => el("div", {}, trial.setting, " ", badgeOf(trial)),
    },
    {
      label: data.unit,
      class: "number",
      key: (trial) => order(trial.rate && trial.rate.mean),
      cell: (trial) => known(trial.rate, ratesText),
    },
    {
      label: "predicted",
      of: "predicted",
      class: "number",
      key: (trial) => order(trial.predicted),
      cell: (trial) => known(trial.predicted, count),
    },
    {
      label: "busy",
      of: "busy",
      class: "number",
      key: (trial) => order(trial.busy),
      cell: (trial) => known(trial.busy, percent),
    },
    {
      label: "peak memory",
      of: "peak_memory_bytes",
      class: "number",
      key: (trial) => order(trial.peak_memory_bytes),
      cell: (trial) => known(trial.peak_memory_bytes, bytes),
    },
    { label: "outcome", class: "outcome", least: true, key: (trial) => trial.outcome, cell: outcomeText },
    { label: "took", class: "number", key: (trial) => trial.seconds, cell: (trial) => duration(trial.seconds * 1e9) },
    { label: "run", class: "run", least: true, key: (trial) => trial.run, cell: (trial) => trial.run },
  ];
  return el(
    "section",
    { id: "trials" },
    el("h2", {}, "Trials", el("small", {}, "each is a run in the store")),
    sortableTable(
      columns.filter((column) => !column.of || isKnown(column.of)),
      trials,
      (trial) => `${trial.setting} ${trial.outcome} ${trial.why ?? ""} ${trial.run}`,
    ),
  );
}

function notesSection() {
  const list = (title, items) =>
    items.length
      ? el(
          "div",
          { class: "card" },
          el("h3", {}, title),
          el(
            "ul",
            { class: "notes" },
            items.map((item) => el("li", {}, item)),
          ),
        )
      : "";
  const ended = data.reason && data.advice ? [`all the rest: ${data.reason}`] : [];
  const held = data.held.length
    ? [`${data.held.join(", ")}: they change training results (--knobs all turns them, too)`]
    : [];
  const command = (text) => el("code", {}, text),
    { advice } = data;
  const closer = [
    advice && advice.compare && after !== before ? [command(advice.compare), " says what the setting changed"] : "",
    data.trials.some((trial) => trial.run) ? [command("fullbore explain RUN"), " explains a trial"] : "",
  ].filter(Boolean);
  const nodes = [
    list("Training results", data.losses),
    list("Not tried", [...data.not_tried, ...held, ...ended]),
    list("Look closer", closer),
  ].filter(Boolean);
  return nodes.length
    ? el("section", { id: "notes" }, el("h2", {}, "Also worth knowing"), el("div", { class: "facts" }, nodes))
    : "";
}

// ---- the whole page --------------------------------------------------------------------------------------------

function draw() {
  for (const panel of panels) panel.draw();
}

startTheme(draw);
document
  .getElementById("page")
  .replaceChildren(
    ...[
      topLine(),
      data.resume ? el("p", { class: "failure", role: "alert" }, `Interrupted: ${data.resume} goes on`) : "",
      verdict(),
      figuresSection(),
      ...chartsSection(),
      trialsSection(),
      notesSection(),
      el(
        "footer",
        {},
        "Written by fullbore tune. Intervals are of 95 %; ",
        "a setting that was tried several times counts with the mean of its trials.",
      ),
    ].filter(Boolean),
  );
draw();
addEventListener("resize", draw);
