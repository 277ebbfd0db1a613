// Where somebody who may read gives the token; a cookie that no script can read then stands for it.
"use strict";

startTheme(() => {});
navigate("/login");
const [user, token] = tokenInput();
const said = el("span", { class: "said", role: "status" });
const give = async (event) => {
  event.preventDefault();
  try {
    await tell("POST", "/login", { token: token.value });
    location.href = location.pathname === "/login" ? "/" : location.href;
  } catch (error) {
    said.textContent = error.message;
  }
};
document
  .getElementById("page")
  .append(
    el(
      "form",
      { class: "card login", onsubmit: give },
      el("h1", {}, "Token"),
      el("p", { class: "soft" }, "The secret in the file that this server was started with (--token-file)."),
      user,
      token,
      el("button", { type: "submit", class: "primary" }, "Continue"),
      said,
    ),
  );
