// The pages of docs/findings: headings, paragraphs, lists, blocks of code, tables, `code`, *emphasis* and links, which
// is all that they use. Everything becomes text nodes.
"use strict";

// Text with `code`, **strong**, *emphasis* and [links](...), of which only the text is kept: the page asks for nothing.
function inlineNodes(text) {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*]+\*|\[[^\]]+\]\([^)]*\))/);
  return parts.filter(Boolean).map((part) => {
    if (part.length > 2 && part.startsWith("`")) return el("code", {}, part.slice(1, -1));
    if (part.length > 4 && part.startsWith("**")) return el("b", {}, part.slice(2, -2));
    if (part.length > 2 && part.startsWith("*") && part.endsWith("*")) return el("em", {}, part.slice(1, -1));
    const link = part.match(/^\[([^\]]+)\]\(/);
    return link ? link[1] : part;
  });
}

function tableNodes(lines) {
  const rows = lines
    .filter((line) => !/^\|[\s|:-]+\|$/.test(line))
    .map((line) => line.replace(/^\||\|$/g, "").split("|"));
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table" },
    el(
      "table",
      {},
      rows.map((row, i) =>
        el(
          "tr",
          {},
          row.map((cell) => el(i ? "td" : "th", {}, inlineNodes(cell.trim()))),
        ),
      ),
    ),
  );
}

// An item goes on in indented lines.
function listNodes(lines) {
  const items = [];
  for (const line of lines) {
    const begin = line.match(/^(?:[-*]|\d+\.) +(.*)/);
    if (begin) items.push(begin[1]);
    else items[items.length - 1] += " " + line.trim();
  }
  return el(
    /^\d/.test(lines[0]) ? "ol" : "ul",
    {},
    items.map((item) => el("li", {}, inlineNodes(item))),
  );
}

function blockNodes(lines) {
  const heading = lines[0].match(/^(#+) +(.*)/);
  if (heading)
    return [
      el(heading[1].length > 2 ? "h5" : "h4", {}, inlineNodes(heading[2])),
      ...(lines.length > 1 ? blockNodes(lines.slice(1)) : []),
    ];
  if (lines[0].startsWith("|")) return [tableNodes(lines)];
  const item = lines.findIndex((line) => /^(?:[-*]|\d+\.) /.test(line));
  if (item === 0) return [listNodes(lines)];
  if (item > 0) return [...blockNodes(lines.slice(0, item)), listNodes(lines.slice(item))];
  return [el("p", {}, inlineNodes(lines.join(" ")))];
}

// The page's own heading is left out: the reader has just opened it by name.
function markdownNodes(text) {
  const nodes = [],
    open = [];
  let code = null;
  const close = () => {
    if (open.length) nodes.push(...blockNodes(open.splice(0)));
  };
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) {
      if (code) nodes.push(el("pre", { tabindex: 0 }, el("code", {}, code.join("\n"))));
      else close();
      code = code ? null : [];
    } else if (code) code.push(line);
    else if (!line.trim()) close();
    else if (!line.startsWith("# ")) open.push(line);
  }
  close();
  return nodes;
}
