// A run: the page of the HTML report, above it what is happening now, below the note and the tags that people give it.
// What is live comes as server-sent events; the report is fetched again when the server has judged the run anew.
"use strict";

const runName = decodeURIComponent(location.pathname.split("/").at(-1));
const base = "/api/v1/runs/" + encodeURIComponent(runName);
const now = el("section", { class: "card live", "aria-label": "The last minute", hidden: "" });
const about = el("section", { class: "card about", "aria-label": "Note and tags" });
let judgedSteps = null;

async function showReport() {
  openPage(await ask(base + "/page"));
  document.title = "fullbore: " + runName;
  const page = document.getElementById("page");
  page.prepend(now);
  page.append(about);
}

function showNow(live) {
  now.hidden = live.over || live.steps_per_s === undefined;
  if (now.hidden) return;
  const figure = (label, value) =>
    value ? el("div", {}, el("div", { class: "label" }, label), el("div", { class: "value" }, value)) : "";
  now.replaceChildren(
    el("div", {}, el("span", { class: "dot" }), el("b", {}, "running")),
    figure("last minute", rateText(live)),
    figure("tokens", tokensText(live)),
    figure("step", duration(live.mean_step_ns)),
    figure("steps", count(live.steps)),
    ...Object.entries(live.now).map(([name, value]) => figure(name.replaceAll("_", " "), percent(value))),
    shareBar(data.palette, live.shares, true),
  );
}

function listen() {
  const events = new EventSource(base + "/events");
  events.addEventListener("live", async (event) => {
    const live = JSON.parse(event.data);
    if (live.over) events.close();
    showNow(live);
    if (!live.over && live.judged_steps === judgedSteps) return;
    const first = judgedSteps === null && live.over;
    judgedSteps = live.judged_steps;
    if (!first) await showReport();
  });
}

// The text of the tags: "lr=3e-4 team=vision"; a value with blanks is in quotes.
function tagsAsText(tags) {
  return Object.entries(tags)
    .map(([key, value]) => key + "=" + (/\s/.test(value) ? JSON.stringify(value) : value))
    .join(" ");
}
function textAsTags(text) {
  const tags = {};
  for (const [, key, quoted, plain] of text.matchAll(/([^\s=]+)=(?:"((?:[^"\\]|\\.)*)"|(\S*))/g))
    tags[key] = quoted === undefined ? plain : JSON.parse(`"${quoted}"`);
  return tags;
}

// A run that this server may delete. Opened first, and then asked: there is no way back.
function deletion(token, said) {
  const remove = async () => {
    try {
      await tell("POST", base + "/delete", { name: runName }, token.value);
      location.href = "/";
    } catch (error) {
      said.textContent = error.message;
    }
  };
  return el(
    "details",
    { class: "deletion" },
    el("summary", {}, "Delete this run"),
    el("p", {}, "Its file goes, with the report and the windows beside it. There is no way back."),
    el("button", { type: "button", class: "danger", onclick: remove }, "Delete " + runName),
  );
}

async function showAbout() {
  const run = await ask(base + "/about");
  const note = el("textarea", { "aria-label": "Note", maxlength: "8000" });
  const tags = el("input", { "aria-label": "Tags", placeholder: "lr=3e-4 team=vision" });
  const [user, token] = tokenInput();
  const said = el("span", { class: "said", role: "status" });
  note.value = run.note || "";
  tags.value = tagsAsText(run.tags);
  const save = async (event) => {
    event.preventDefault();
    try {
      await tell("PUT", base + "/note", { note: note.value }, token.value);
      await tell("PUT", base + "/tags", textAsTags(tags.value), token.value);
      said.textContent = "saved";
    } catch (error) {
      said.textContent = error.message;
    }
  };
  about.replaceChildren(
    el("h2", {}, "Note and tags"),
    el(
      "form",
      { onsubmit: save },
      note,
      tags,
      el(
        "div",
        { class: "row" },
        user,
        token,
        el("button", { type: "submit" }, "Save"),
        said,
        el("span", { class: "soft" }, "Needs the token that the server was started with."),
      ),
    ),
    el(
      "p",
      { class: "row" },
      el("a", { href: base }, "Report as JSON"),
      el("a", { href: base + "/series.csv" }, "Series as CSV"),
      el("a", { href: base + "/report.html", download: "" }, "Report as one HTML file, to send"),
    ),
    run.may_be_deleted ? deletion(token, said) : "",
  );
}

navigate("", true);
showReport().then(showAbout).then(listen).catch(complain);
