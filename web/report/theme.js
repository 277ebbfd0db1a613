// Light or dark, as the reader's system wants it until the reader chooses; paper is white.
"use strict";

function storedTheme() {
  try {
    return localStorage.getItem("fullbore-theme");
  } catch {
    return null;
  }
}

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

// Once per page; `draw` draws the charts again.
function startTheme(draw) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  applyTheme(storedTheme() || (dark.matches ? "dark" : "light"));
  dark.addEventListener("change", () => {
    if (!storedTheme()) applyTheme(dark.matches ? "dark" : "light");
  });
  let before = null;
  addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    applyTheme("light");
    draw();
  });
  addEventListener("afterprint", () => {
    if (before) applyTheme(before);
    draw();
  });
}

function themeButton() {
  return el(
    "button",
    {
      class: "theme",
      type: "button",
      title: "Light or dark",
      "aria-label": "Switch between light and dark",
      onclick: () => {
        const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
        applyTheme(theme);
        try {
          localStorage.setItem("fullbore-theme", theme);
        } catch {
          /* a page from a file may have no storage */
        }
      },
    },
    "◐",
  );
}

// The relative luminance of WCAG 2.
function luminance(color) {
  const [r, g, b] = [1, 3, 5]
    .map((i) => parseInt(color.slice(i, i + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// Of nearly black and white, the text that stands out more.
function inkOn(color) {
  const dark = "#14171a",
    behind = luminance(color) + 0.05;
  return behind / (luminance(dark) + 0.05) > 1.05 / behind ? dark : "#ffffff";
}

// The colours of shares. A constructed sheet, because a page with a strict policy takes no style elements.
function paletteStyle(palette) {
  const rules = (key) =>
    palette.map((look) => `--share-${look.name}:${look[key]};--on-${look.name}:${inkOn(look[key])};`).join("");
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`:root{${rules("light")}}:root[data-theme="dark"]{${rules("dark")}}`);
  document.adoptedStyleSheets = [sheet];
}

function shareBar(palette, shares, small) {
  const ordered = palette.filter((look) => shares[look.name] > 0);
  return el(
    "div",
    {
      class: small ? "bar small" : "bar",
      role: "img",
      "aria-label": ordered.map((look) => `${look.label} ${percent(shares[look.name])}`).join(", "),
    },
    ordered.map((look) =>
      el(
        "span",
        {
          title: `${look.label} ${percent(shares[look.name])}: ${look.meaning}`,
          style: {
            flex: `${shares[look.name]} 0 0`,
            background: `var(--share-${look.name})`,
            color: `var(--on-${look.name})`,
          },
        },
        !small && shares[look.name] > 0.09 ? `${look.label} ${percent(shares[look.name])}` : "",
      ),
    ),
  );
}
