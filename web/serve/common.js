// What the pages of `serve` share: navigation, asking the server, the colours of shares.
"use strict";

async function ask(path) {
  const answer = await fetch(path, { credentials: "same-origin", headers: { Accept: "application/json" } });
  const json = await answer.json();
  if (answer.status === 401) location.href = "/login";
  if (!answer.ok) throw new Error([json.error, json.hint].filter(Boolean).join(": "));
  return json;
}

// PUT and POST; with the token where one was given on this page.
async function tell(method, path, json, token) {
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  if (token) headers.Authorization = "Bearer " + token;
  const answer = await fetch(path, { method, credentials: "same-origin", headers, body: JSON.stringify(json) });
  const said = await answer.json();
  if (!answer.ok) throw new Error([said.error, said.hint].filter(Boolean).join(": "));
  return said;
}

// `hasButton`: the page itself has the one for the theme.
function navigate(current, hasButton) {
  const link = (path, text) => el("a", { href: path, "aria-current": path === current ? "page" : null }, text);
  document
    .getElementById("nav")
    .replaceChildren(
      ...[
        el("span", { class: "name" }, "fullbore"),
        link("/", "Runs"),
        link("/alerts", "Alerts"),
        el("span", { class: "spring" }),
        hasButton ? "" : themeButton(),
      ],
    );
}

// Where the token is typed. Password managers want a name for what they keep.
function tokenInput() {
  return [
    el("input", {
      type: "text",
      class: "hidden",
      autocomplete: "username",
      value: "fullbore",
      tabindex: "-1",
      "aria-hidden": "true",
    }),
    el("input", { type: "password", "aria-label": "Token", placeholder: "token", autocomplete: "current-password" }),
  ];
}

function complain(error) {
  document
    .getElementById("page")
    .replaceChildren(
      el("h1", { class: "hidden" }, "This cannot be shown"),
      el("p", { class: "failure", role: "alert" }, String(error.message || error)),
    );
}

function runLink(name) {
  return el("a", { href: "/runs/" + encodeURIComponent(name) }, name);
}

function tagList(tags) {
  return Object.entries(tags).map(([key, value]) => el("span", { class: "tag" }, value ? `${key}=${value}` : key));
}

function rateText(rates) {
  if (rates.samples_per_s !== undefined) return count(rates.samples_per_s) + " samples/s";
  return rates.steps_per_s === undefined ? "" : count(rates.steps_per_s) + " steps/s";
}

function tokensText(rates) {
  if (rates.tokens_per_s === undefined) return "";
  const useful = rates.useful_tokens_per_s;
  const apart = useful !== undefined && useful < rates.tokens_per_s;
  return count(rates.tokens_per_s) + " tokens/s" + (apart ? `, ${count(useful)} without padding` : "");
}

function utc(unix_ns) {
  return unix_ns ? new Date(unix_ns / 1e6).toISOString().slice(0, 16).replace("T", " ") : "";
}

function stateOf(run) {
  const bad = run.out_of_memory || (run.exit_status || 0) !== 0;
  const text = run.out_of_memory ? "out of memory" : bad ? `exit ${run.exit_status}` : run.state;
  return el("span", { class: "state " + (bad ? "failed" : run.state === "running" ? "running" : "") }, text);
}
