// The findings with their evidence, which the charts show, and what the changes bring together.

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
