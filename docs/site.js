// A page that was opened from the disk may start no worker, and the theme's search is one. Its script runs in a hidden
// frame instead: only there, and only on such pages. (The theme would fetch another program for this from a server.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      addEventListener("message", (said) => {
        if (said.source !== this.inner) return;
        this.dispatchEvent(new MessageEvent("message", { data: said.data }));
      });
      this.loaded = new Promise((done) => {
        this.inner.done = done;
      });
      this.inner.document.write(
        "<script>var postMessage = (data) => parent.postMessage(data, '*');</" + "script>" +
          `<script src="${url}" onload="done()"></` + "script>",
      );
      this.inner.document.close();
    }

    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}

// For those who read with the keyboard or by ear: blocks that are wider than the page can be scrolled, and the buttons
// that the theme puts beside them are told apart.
new MutationObserver(() => {
  for (const code of document.querySelectorAll("pre > code:not([tabindex])")) code.tabIndex = 0;
  document.querySelectorAll(".md-code__nav").forEach((nav, index) => {
    if (!nav.hasAttribute("aria-label")) nav.setAttribute("aria-label", `Block ${index + 1}`);
  });
}).observe(document, { childList: true, subtree: true });
