// The page, from what was recorded. A page of a live run opens it again and again.
"use strict";

let data, report, looks, axis, timeline; // of what is shown
const lookOf = (share) => looks.get(share) || looks.get("host_other");

// ---- the top -------------------------------------------------------------------------------------------------

function topLine() {
  return el(
    "div",
    { class: "top" },
    el("span", { class: "name" }, "fullbore"),
    el("span", { class: "run" }, report.run_id || report.source),
    data.subject.map((part) => el("span", { class: "wrap" }, part)),
    el("span", {}, data.begin_utc ? data.begin_utc + " UTC" : ""),
    el("span", { class: "spring" }),
    themeButton(),
  );
}

function predictedRate(finding) {
  const rate = report.throughput || {};
  const [now, unit] =
    rate.samples_per_s !== undefined
      ? [rate.samples_per_s, "samples/s"]
      : [rate.steps_per_s, report.serving ? "iterations/s" : "steps/s"];
  return now === undefined ? "" : `${count(now)} → ${count(now * finding.speedup.expected)} ${unit}`;
}

function verdict() {
  const first = data.refused ? null : report.findings[0];
  const box = el(
    "section",
    { class: "card verdict " + (first ? first.severity : data.refused ? "warning" : "none") },
    data.limits.map((text) => el("p", { class: "limit" }, text)),
    el("h1", {}, data.verdict),
  );
  const change = first && (first.change || first.fix[0]);
  if (!change) return box;
  const place = (first.where || [])[0];
  box.append(
    el(
      "div",
      { class: "answer" },
      el(
        "div",
        {},
        el(
          "div",
          { class: "label" },
          "What to do",
          place ? el("span", {}, " at ", el("code", {}, placeText(place))) : "",
        ),
        el("span", { class: first.change ? "change" : "change words" }, change),
      ),
      first.speedup
        ? el(
            "div",
            {},
            el("div", { class: "label" }, "Predicted gain"),
            el("div", { class: "gain" }, gainText(first.speedup), el("small", {}, predictedRate(first))),
          )
        : "",
    ),
  );
  return box;
}

function stepSection() {
  const step = report.step_time;
  if (!step) return null;
  const parts = Object.entries(step.host_other_parts || {}).filter(
    ([name, ratio]) => name !== "unnamed" && ratio >= 0.005,
  );
  const legend = data.palette
    .filter((look) => step.shares[look.name] >= 0.0005)
    .map((look) =>
      el(
        "li",
        { title: look.meaning },
        el("span", { class: "swatch", style: { background: `var(--share-${look.name})` } }),
        look.label,
        el("b", {}, percent(step.shares[look.name])),
        el("span", { class: "soft" }, duration(step.shares[look.name] * step.mean_ns)),
        look.name === "host_other" && parts.length
          ? el(
              "span",
              { class: "soft" },
              "of that " + parts.map(([name, ratio]) => `${name} ${percent(ratio)}`).join(", "),
            )
          : "",
      ),
    );
  const rank = report.ranks.length > 1 ? `, rank ${report.ranks[0].rank}` : "";
  const whose = step.shares_of === "device" ? "seen from the device" : "of the training thread";
  return el(
    "section",
    { class: "card step" },
    el(
      "header",
      {},
      el(
        "span",
        {},
        el("b", {}, `A ${data.step_word} takes ${duration(step.mean_ns)}`),
        el("span", { class: "soft" }, ` ${whose}${rank}`),
      ),
      el("span", { class: "soft" }, spreadText(step), el("span", { title: report.window.warmup_why }, stepsText())),
    ),
    shareBar(data.palette, step.shares),
    el("ul", { class: "legend" }, legend),
    data.regimes ? el("p", { class: "soft" }, data.regimes) : "",
  );
}

// One step has no spread, and fewer than twenty have no 95th percentile.
function spreadText(step) {
  const { steps } = report.window;
  if (steps < 2) return "";
  return `median ${duration(step.median_ns)}, ` + (steps < 20 ? "" : `95th percentile ${duration(step.p95_ns)}, `);
}

function stepsText() {
  const { steps, warmup_steps } = report.window;
  return (
    (steps === 1 ? "one " + data.step_word : `${count(steps)} ${data.step_word}s`) +
    (warmup_steps ? ` after ${count(warmup_steps)} of warm-up` : "")
  );
}

function figuresSection() {
  if (!data.figures.length) return null;
  return el(
    "section",
    { class: "card figures" },
    data.figures.map(([label, value]) =>
      el("div", {}, el("div", { class: "label" }, label), el("div", { class: "value" }, value)),
    ),
  );
}

// ---- findings ------------------------------------------------------------------------------------------------

let pinned = null;

// Shows a piece of evidence in the charts; without one, whatever is pinned, or nothing.
function show(evidence) {
  const lit = evidence || (pinned && pinned.evidence);
  const band =
    lit && lit.begin_ns !== undefined && lit.end_ns !== undefined
      ? [(lit.begin_ns - data.begin_ns) / 1e6, (lit.end_ns - data.begin_ns) / 1e6]
      : null;
  axis.highlight(band, lit && lit.series ? keysOf(lit.series) : null);
}

// Evidence names a series with or without its labels, or a share; a line may stand for several series.
function keysOf(series) {
  const wanted = series.replace(/["' ]/g, "");
  const matching = axis.panels
    .flatMap((panel) => panel.rows())
    .filter(
      (line) =>
        line.key === wanted ||
        line.key.startsWith(wanted + "{") ||
        (line.keys || []).includes(wanted) ||
        wanted.startsWith(line.key + "{"),
    );
  return new Set(matching.map((line) => line.key));
}

function pin(evidence, row) {
  const same = pinned && pinned.evidence === evidence;
  if (pinned) pinned.row.classList.remove("lit");
  pinned = same ? null : { evidence, row };
  if (pinned) row.classList.add("lit");
  show(null);
  const panel = pinned && axis.panels.find((each) => each.node.classList.contains("lit"));
  const target = panel ? panel.node : document.getElementById("panel-shares");
  if (pinned && target) target.scrollIntoView({ behavior: "smooth", block: "center" });
}

function evidenceRow(evidence) {
  const charted = evidence.series || evidence.begin_ns !== undefined;
  const row = el(
    "li",
    {},
    charted
      ? el(
          "button",
          { class: "what wrap", type: "button", title: "Show in the charts", onclick: () => pin(evidence, row) },
          evidence.what,
        )
      : el("span", { class: "wrap" }, evidence.what),
    el(
      "span",
      { class: "amount" },
      evidence.value === undefined ? "" : amount(evidence.value, evidence.unit),
      el("small", {}, evidence.source),
    ),
  );
  if (charted) {
    row.addEventListener("pointerenter", () => show(evidence));
    row.addEventListener("pointerleave", () => show(null));
  }
  return row;
}

// What a change costs besides making it.
const COSTS = { memory: ", takes more memory", numerics: ", changes the numerics" };

// The first finding's title is already the headline of the page.
function findingCard(finding, index) {
  const fixes = (finding.fix || []).map((text) => el("li", {}, text));
  const places = (finding.where || []).map((place) =>
    el("div", { class: "place" }, el("span", { class: "at" }, placeText(place) + "  "), place.text || ""),
  );
  const heading = finding.change || fixes.length ? "What to change" : places.length ? "Where" : "";
  return el(
    "article",
    { class: "card finding" },
    el(
      "header",
      {},
      el(
        "span",
        { class: "badge " + finding.severity, title: finding.severity },
        finding.id + (finding.cause ? ": " + finding.cause : ""),
      ),
      el("h3", {}, index === 0 ? "Why, and how to change it" : finding.title),
      finding.speedup
        ? el("span", { class: "speedup" }, gainText(finding.speedup) + " faster" + (COSTS[finding.costs] || ""))
        : "",
    ),
    el(
      "div",
      { class: "columns" },
      el(
        "div",
        {},
        heading ? el("h4", {}, heading) : "",
        finding.change ? el("div", { class: "change", style: { marginBottom: "6px" } }, finding.change) : "",
        fixes.length ? el("ul", { class: "fix" }, fixes) : "",
        places,
      ),
      finding.evidence.length
        ? el("div", {}, el("h4", {}, "Evidence"), el("ul", { class: "evidence" }, finding.evidence.map(evidenceRow)))
        : "",
    ),
    finding.method ? el("p", { class: "method" }, "Predicted by: " + finding.method) : "",
    handbook(finding.id),
  );
}

// The page of `fullbore help FINDING`, laid out when it is opened.
function handbook(id) {
  const text = (data.finding_pages || {})[id];
  if (!text) return "";
  const pages = el("div", { class: "handbook" });
  return el(
    "details",
    {
      class: "more",
      ontoggle: () => {
        if (!pages.firstChild) pages.append(...markdownNodes(text));
      },
    },
    el("summary", {}, `About ${id}: what it costs, how to confirm it, how to fix it`),
    pages,
  );
}

function findingsSection() {
  if (!report.findings.length) return null;
  return el(
    "section",
    { id: "findings" },
    el(
      "h2",
      {},
      report.findings.length > 1 ? "Findings" : "Finding",
      report.findings.length > 1 ? el("small", {}, "by predicted gain") : "",
    ),
    report.findings.map(findingCard),
  );
}

// The step after each change, given those before it. Gains do not add: this is what they bring together.
function rungRows(rungs) {
  const now = report.step_time.mean_ns;
  const row = (step_ns, name, title, gain, costs) =>
    el(
      "tr",
      {},
      el("td", { class: "number" }, duration(step_ns)),
      el("td", { class: "part" }, el("div", { class: "rung", style: { width: (100 * step_ns) / now + "%" } })),
      el("td", { class: "number soft", title: gain ? "against the recorded steps" : "" }, gain),
      el("td", { class: "name" }, el("b", {}, name)),
      el("td", { class: "soft", title }, costs),
    );
  return [
    row(now, "as recorded", "", "", ""),
    ...rungs.map((rung) =>
      row(
        now / rung.speedup.expected,
        rung.change,
        "assumes " + rung.assumes,
        gainText(rung.speedup),
        rung.does + (rung.costs === "nothing" ? "" : `; costs ${rung.costs}`),
      ),
    ),
  ];
}

function replaySection() {
  const replay = report.replay;
  if (!replay || !report.step_time) return null;
  const asked = replay.what_if || [];
  const refused = (replay.refused || []).map((each) =>
    el("li", { class: "warning" }, `${each.change} cannot be made here: ${each.why}`),
  );
  if (!replay.ladder.length && !asked.length && !refused.length) return null;
  const table = (title, rungs) =>
    rungs.length
      ? el("div", { class: "card scroll rungs" }, el("h3", { class: "tight" }, title), el("table", {}, rungRows(rungs)))
      : "";
  return el(
    "section",
    { id: "replay" },
    el("h2", {}, "One change after the other", el("small", {}, "the recorded steps, run again")),
    table("What you asked for", asked),
    refused.length ? el("ul", { class: "notes" }, refused) : "",
    table(asked.length ? "What is surest to gain" : "", replay.ladder),
    replay.unexplained >= 0.005
      ? el("p", { class: "method" }, `${percent(replay.unexplained)} of the step follows from nothing recorded.`)
      : "",
  );
}

// ---- charts --------------------------------------------------------------------------------------------------

function chooser(label, values, onChange) {
  return el(
    "label",
    {},
    label + " ",
    el(
      "select",
      { onchange: (event) => onChange(event.target.value) },
      values.map(([value, text]) => el("option", { value }, text)),
    ),
  );
}

function rankChooser(ranks, onChange) {
  return chooser(
    "Rank",
    ranks.map((each, i) => [i, `${each.rank} ${each.device || ""}`]),
    (i) => onChange(ranks[i]),
  );
}

function chartsSection() {
  const gpus = [...new Set(data.series.map((series) => series.labels.gpu).filter((gpu) => gpu !== undefined))];
  const chosen = {};
  let rank = data.ranks[0];
  const panels = el("div", { class: "card panels" });
  const more = el("div", { class: "card panels" });
  const now = el("span", { class: "clock" });
  const all = el("button", { type: "button", hidden: "", onclick: () => axis.reset() }, "Show all");
  const rest = el("details", { class: "more" }, el("summary", {}, "Everything else that was recorded"), more);

  const rebuild = () => {
    axis.panels = [];
    const add = (box, specs) => box.replaceChildren(...specs.map((spec) => new Panel(axis, spec).node));
    add(panels, [...(rank ? stepPanels(data, rank) : []), ...rankPanel(data), ...hardwarePanels(data, chosen)]);
    const others = otherPanels(data);
    if (rest.open) add(more, others);
    rest.hidden = !others.length;
    if (panels.isConnected) show(null); // draws, with whatever is pinned
  };
  rest.addEventListener("toggle", rebuild);
  axis.onChange = () => {
    const [begin, end] = axis.view;
    all.hidden = begin === 0 && end === axis.end;
    now.textContent = axis.cursor === null ? "" : clock(axis.cursor, (end - begin) / 600, axis.end);
  };
  rebuild();
  if (!axis.panels.length) return null;
  const tools = el(
    "div",
    { class: "tools" },
    data.ranks.length > 1
      ? rankChooser(data.ranks, (each) => {
          rank = each;
          rebuild();
        })
      : "",
    gpus.length > 1
      ? chooser("GPU", [["", "all"], ...gpus.map((gpu) => [gpu, gpu])], (gpu) => {
          chosen.gpu = gpu || undefined;
          rebuild();
        })
      : "",
    el(
      "span",
      { class: "hint" },
      "Point to read values, drag to zoom, double-click to see all; or arrow keys, + and -, Escape.",
    ),
    all,
    el(
      "button",
      {
        type: "button",
        title: "All that these charts show, as time_s,quantity,series,unit,value",
        onclick: () => saveAs(`${report.run_id || "fullbore"}.csv`, csvOf(axis.panels)),
      },
      "CSV",
    ),
    now,
  );
  return el("section", { id: "charts" }, el("h2", {}, "Over time"), tools, panels, rest);
}

// ---- ranks, lines, notes, facts --------------------------------------------------------------------------------

function ranksSection() {
  const ranks = report.ranks.filter((rank) => rank.shares);
  if (ranks.length < 2) return null;
  const longest = Math.max(...ranks.map((rank) => rank.mean_step_ns));
  return el(
    "section",
    { id: "ranks" },
    el("h2", {}, "Ranks", el("small", {}, "each bar is as long as the rank's step")),
    el(
      "div",
      { class: "card scroll" },
      el(
        "table",
        {},
        ranks.map((rank) =>
          el(
            "tr",
            {},
            el("td", { class: "number" }, rank.rank),
            el("td", { class: "soft" }, rank.device || ""),
            el(
              "td",
              { class: "grow" },
              el(
                "div",
                { style: { width: (100 * rank.mean_step_ns) / longest + "%" } },
                shareBar(data.palette, rank.shares, true),
              ),
            ),
            el("td", { class: "number" }, duration(rank.mean_step_ns)),
          ),
        ),
      ),
    ),
  );
}

function linesSection() {
  const rank = data.ranks.find((each) => each.hot_lines.length);
  if (!rank) return null;
  const top = rank.hot_lines[0].part;
  const rows = rank.hot_lines.map((line) =>
    el(
      "tr",
      {},
      el("td", { class: "number" }, percent(line.part)),
      el(
        "td",
        { class: "part" },
        el("div", {
          title: lookOf(line.share).meaning,
          style: { width: (100 * line.part) / top + "%", background: `var(--share-${lookOf(line.share).name})` },
        }),
      ),
      el("td", { class: "soft" }, lookOf(line.share).label),
      el("td", { class: "code" }, el("span", { title: line.file }, placeText(line)), line.text || line.function || ""),
    ),
  );
  return el(
    "section",
    { id: "lines" },
    el(
      "h2",
      {},
      "Source lines",
      el(
        "small",
        {},
        "where the training thread spent its time" + (data.ranks.length > 1 ? `, rank ${rank.rank}` : ""),
      ),
    ),
    el("div", { class: "card scroll" }, el("table", {}, rows)),
  );
}

function kernelsSection() {
  const ranks = data.ranks.filter((each) => each.kernels.length);
  if (!ranks.length) return null;
  const box = el("div");
  const show = (rank) => {
    const top = rank.kernels[0].part;
    box.replaceChildren(
      sortableTable(
        [
          { label: "share", class: "number", key: (kernel) => kernel.part, cell: (kernel) => percent(kernel.part) },
          {
            label: "",
            class: "part",
            cell: (kernel) =>
              partBar(
                kernel.part,
                top,
                "of the time of all kernels",
                `var(--share-${kernel.class === "comm" ? "comm_exposed" : "compute"})`,
              ),
          },
          { label: "launches", class: "number", key: (kernel) => kernel.count, cell: (kernel) => count(kernel.count) },
          {
            label: "mean",
            class: "number",
            key: (kernel) => kernel.mean_ns,
            cell: (kernel) => duration(kernel.mean_ns),
          },
          {
            label: "class",
            class: "soft",
            least: true,
            key: (kernel) => kernel.class,
            cell: (kernel) => kernel.class.replaceAll("_", " "),
          },
          {
            label: "kernel",
            class: "code",
            least: true,
            key: (kernel) => kernel.name,
            cell: (kernel) =>
              el(
                "div",
                { class: "wrap", title: kernel.name },
                kernel.name.length > 90 ? kernel.name.slice(0, 90) + "…" : kernel.name,
              ),
          },
        ],
        rank.kernels,
        (kernel) => kernel.name + " " + kernel.class,
      ),
    );
  };
  show(ranks[0]);
  return el(
    "section",
    { id: "kernels" },
    el("h2", {}, "Kernels", el("small", {}, "by their part of the time of all kernels")),
    ranks.length > 1 ? el("div", { class: "tools still" }, rankChooser(ranks, show)) : "",
    box,
  );
}

// Of a training on the CPU, in the few steps that a profiler saw.
function operatorsSection() {
  const seen = report.device_window;
  if (!seen || !(seen.operators || []).length) return null;
  const top = seen.operators[0].share;
  const table = sortableTable(
    [
      { label: "share", class: "number", key: (each) => each.share, cell: (each) => percent(each.share) },
      {
        label: "",
        class: "part",
        cell: (each) => partBar(each.share, top, "of the time of these steps", "var(--share-compute)"),
      },
      { label: "calls", class: "number", key: (each) => each.count, cell: (each) => count(each.count) },
      { label: "time", class: "number", key: (each) => each.ns, cell: (each) => duration(each.ns) },
      {
        label: "GFLOP/s",
        class: "number",
        key: (each) => each.flops_per_s || 0,
        cell: (each) => (each.flops_per_s === undefined ? "" : count(each.flops_per_s / 1e9)),
      },
      {
        label: "operator",
        class: "code",
        least: true,
        key: (each) => each.name,
        cell: (each) => el("div", { class: "wrap" }, each.name),
      },
    ],
    seen.operators,
    (each) => each.name,
  );
  return el(
    "section",
    { id: "operators" },
    el(
      "h2",
      {},
      "Operators",
      el(
        "small",
        {},
        `of a step on the CPU, under a profiler in steps ${seen.first_step} to ${seen.first_step + seen.steps - 1}`,
      ),
    ),
    table,
  );
}

function notesSection() {
  const list = (title, items) =>
    items.length ? el("div", { class: "card" }, el("h3", {}, title), el("ul", { class: "notes" }, items)) : null;
  const boxes = [
    list(
      "Would not help",
      report.would_not_help.map((note) =>
        el("li", {}, note.what, el("span", { class: "soft" }, note.why ? ": " + note.why : "")),
      ),
    ),
    list(
      "Not judged",
      report.not_judged.map((note) =>
        el(
          "li",
          {},
          note.id,
          el(
            "span",
            { class: "soft" },
            (note.why ? ": " + note.why : "") + (note.needs ? "; needs " + note.needs : ""),
          ),
        ),
      ),
    ),
    list(
      "Judged in part",
      data.caveats.map((text) => el("li", {}, text)),
    ),
    list(
      "Messages",
      data.messages.map((message) =>
        el(
          "li",
          { class: message.severity },
          el(
            "span",
            { class: "soft" },
            (message.t_ms === undefined ? "" : clock(message.t_ms, axis.end / 100, axis.end) + "  ") +
              message.source +
              "  ",
          ),
          message.text,
        ),
      ),
    ),
  ].filter(Boolean);
  return boxes.length
    ? el("section", { id: "notes" }, el("h2", {}, "Also worth knowing"), el("div", { class: "facts" }, boxes))
    : null;
}

function factText(name, value) {
  if (name.endsWith("_bytes") && Number.isFinite(Number(value))) return bytes(Number(value));
  return typeof value === "string" ? value : JSON.stringify(value);
}

function factsSection() {
  const box = (title, entries) => {
    const rows = entries.filter(([, value]) => value !== undefined && value !== "");
    return rows.length
      ? el(
          "div",
          { class: "card" },
          el("h3", {}, title),
          el(
            "table",
            {},
            rows.map(([name, value]) =>
              el(
                "tr",
                {},
                el("td", { title: name }, name.replace(/_bytes$/, "").replaceAll("_", " ")),
                el("td", {}, factText(name, value)),
              ),
            ),
          ),
        )
      : null;
  };
  const boxes = [
    box("Command", [
      ["command", data.command],
      ["directory", data.directory],
      ["exit status", report.exit_status],
      ["recorded in", report.source],
    ]),
    box("Training", Object.entries(report.facts)),
    ...data.ranks.slice(0, 1).flatMap((rank) =>
      rank.loaders.map((loader) =>
        box(
          "Data loader" + (loader.where ? " at " + loader.where : ""),
          Object.entries(loader).filter(([name]) => name !== "where"),
        ),
      ),
    ),
    box("Machine", Object.entries(report.machine)),
    data.stages.length > 1
      ? box(
          "Stages",
          data.stages.map((stage) => [stage.name, stage.text]),
        )
      : null,
  ].filter(Boolean);
  return el("section", { id: "facts" }, el("h2", {}, "The run"), el("div", { class: "facts" }, boxes));
}

function textSection() {
  return el(
    "details",
    { class: "more" },
    el("summary", {}, "This report as text"),
    el("pre", { class: "text-report", tabindex: 0 }, data.text),
  );
}

function draw() {
  for (const each of [axis, timeline && timeline.axis]) if (each) each.draw();
}

// ---- the whole page --------------------------------------------------------------------------------------------

// Shows what was recorded, in the place of what was shown before: of a live run that is the same, grown longer. The
// reader keeps what was opened and zoomed to.
function openPage(recorded) {
  const view = axis && (axis.view[0] > 0 || axis.view[1] < axis.end) ? axis.view : null;
  const opened = [...document.querySelectorAll("#page details")].map((each) => each.open);
  data = recorded;
  report = data.report;
  looks = new Map(data.palette.map((look) => [look.name, look]));
  const off = axis ? axis.off : new Set();
  axis = new TimeAxis(Math.max(0.001, data.end_ms));
  axis.off = off;
  timeline = timelineSection(data);
  pinned = null;
  paletteStyle(data.palette);
  document
    .getElementById("page")
    .replaceChildren(
      ...[
        topLine(),
        data.failure ? el("p", { class: "failure", role: "alert" }, data.failure) : null,
        verdict(),
        stepSection(),
        figuresSection(),
        findingsSection(),
        replaySection(),
        timeline && timeline.node,
        chartsSection(),
        ranksSection(),
        linesSection(),
        kernelsSection(),
        operatorsSection(),
        notesSection(),
        factsSection(),
        textSection(),
        el(
          "footer",
          {},
          `Written by fullbore. Schema ${report.schema}. Shares, figures and charts are of stage `,
          data.stage,
          ".",
        ),
      ].filter(Boolean),
    );
  document.querySelectorAll("#page details").forEach((each, i) => {
    each.open = Boolean(opened[i]);
  });
  if (view) axis.zoom(...view);
  draw();
}

startTheme(draw);
let drawnWidth = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== drawnWidth) {
    drawnWidth = innerWidth;
    draw();
  }
});
const embedded = document.getElementById("data");
if (embedded) openPage(JSON.parse(embedded.textContent));
