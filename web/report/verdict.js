// The top of the page: which run it is, the verdict, the step, the figures and the device's memory.

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

function memorySection() {
  const memory = data.memory;
  if (!memory && !data.memory_what_if) return null;
  const parts = memory ? data.memory_palette.filter((look) => memory.parts[look.name]) : [];
  const legend = parts.map((look) =>
    el(
      "li",
      { title: look.meaning },
      el("span", { class: "swatch", style: { background: `var(--share-${look.name})` } }),
      look.label,
      el("b", {}, percent(memory.shares[look.name])),
      el("span", { class: "soft" }, memory.parts[look.name]),
    ),
  );
  return el(
    "section",
    { class: "card step", id: "memory" },
    memory ? el("header", {}, el("b", {}, `Device memory: ${memory.title}`)) : "",
    memory ? shareBar(data.memory_palette, memory.shares) : "",
    memory ? el("ul", { class: "legend" }, legend) : "",
    data.memory_what_if ? el("p", { class: "soft" }, data.memory_what_if) : "",
  );
}
