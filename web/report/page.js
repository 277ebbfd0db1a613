// The page, from what was recorded. A page of a live run opens it again and again.
"use strict";

let data, report, looks, axis, timeline, flame; // of what is shown
const lookOf = (share) => looks.get(share) || looks.get("host_other");

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
    add(panels, [
      ...(rank ? stepPanels(data, rank) : []),
      ...loggedPanels(data),
      ...rankPanel(data),
      ...hardwarePanels(data, chosen),
    ]);
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

// ---- the whole page --------------------------------------------------------------------------------------------

function draw() {
  for (const each of [axis, timeline && timeline.axis, flame]) if (each) each.draw();
}

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
  flame = null;
  paletteStyle([...data.palette, ...data.memory_palette]);
  document
    .getElementById("page")
    .replaceChildren(
      ...[
        topLine(),
        data.failure ? el("p", { class: "failure", role: "alert" }, data.failure) : null,
        verdict(),
        stepSection(),
        figuresSection(),
        memorySection(),
        findingsSection(),
        replaySection(),
        timeline && timeline.node,
        chartsSection(),
        nodesSection(),
        ranksSection(),
        linesSection(),
        kernelsSection(),
        operatorsSection(),
        flameSection(),
        rooflineSection(),
        traceTablesSection(),
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
