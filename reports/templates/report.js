"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  // The theme: what the system says, until a reader chooses. Some browsers keep nothing for files.
  const button = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  const recall = () => { try { return localStorage.getItem("foldproof-theme"); } catch { return null; } };
  const keep = (name) => { try { localStorage.setItem("foldproof-theme", name); } catch { /* it lasts for the visit */ } };
  const wear = (name) => {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
  };
  let theme = themes.includes(recall()) ? recall() : "auto";
  wear(theme);
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    wear(theme);
    keep(theme);
  });

  // Filters: every word of the text must occur in a row, and its verdict be among the pressed chips. A long table
  // starts with its first rows: laying out thousands takes a browser seconds.
  const clear = new Map();
  const count = (number) => number.toLocaleString("en");
  for (const grid of document.querySelectorAll("[data-grid]")) {
    const input = grid.querySelector("input");
    if (!input) continue;
    const left = grid.querySelector("output");
    const more = grid.querySelector("button.rest");
    const chips = [...grid.querySelectorAll("[data-word]")];
    const rows = [...grid.querySelectorAll("tbody > tr")];
    const kinds = rows.map((row) => row.dataset.w?.split("|") ?? []);
    let limit = more ? Number(more.dataset.most) : Infinity;
    let texts = null;
    const read = (row) => {
      const full = [...row.querySelectorAll("[title]")].map((node) => node.title);
      return [row.textContent, ...full].join(" ").toLowerCase();
    };
    const apply = () => {
      const pressed = chips.filter((chip) => chip.getAttribute("aria-pressed") === "true");
      const words = new Set(pressed.map((chip) => chip.dataset.word));
      const needles = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      if (needles.length) texts ??= rows.map(read);
      let found = 0;
      rows.forEach((row, place) => {
        const asked = !words.size || kinds[place].some((word) => words.has(word));
        const fits = asked && needles.every((part) => texts[place].includes(part));
        if (fits) found += 1;
        const shown = fits && found <= limit;
        if (row.hidden === shown) row.hidden = !shown;
      });
      const all = count(rows.length);
      left.textContent = found === rows.length ? `${all} rows` : `${count(found)} of ${all} rows`;
      if (more) {
        more.hidden = found <= limit;
        more.textContent = `The first ${count(limit)} are shown. Show all ${count(found)}`;
      }
    };
    input.addEventListener("input", apply);
    for (const chip of chips) {
      chip.addEventListener("click", () => {
        chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
        apply();
      });
    }
    more?.addEventListener("click", () => {
      const next = rows.find((row) => row.hidden);
      limit = Infinity;
      apply();
      next.tabIndex = -1;
      next.focus();
    });
    clear.set(grid, () => {
      input.value = "";
      for (const chip of chips) chip.setAttribute("aria-pressed", "false");
      limit = Infinity;
      apply();
    });
    if (more) apply();
  }

  // Copying: the clipboard where the browser lets a file use it, else the selection.
  const select = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };
  document.addEventListener("click", async (event) => {
    const copy = event.target.closest("button.copy");
    if (!copy) return;
    const code = copy.previousElementSibling;
    let done = true;
    try {
      await navigator.clipboard.writeText(copy.dataset.copy ?? code.textContent);
    } catch {
      select(code);
      done = document.execCommand("copy");
    }
    copy.dataset.done = done ? "copied" : "selected";
    document.getElementById("said").textContent = copy.dataset.done;
    setTimeout(() => { delete copy.dataset.done; }, 1500);
  });

  // A browser leaves what has the focus half out of a box's sight; a reader at the keyboard shall see all of it.
  document.addEventListener("focusin", (event) => {
    if (event.target.parentElement?.closest(".box")) event.target.scrollIntoView({ block: "nearest", inline: "nearest" });
  });

  // Links into the page: what they lead to is opened, freed from a filter, and gets the focus.
  const reveal = () => {
    let target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { /* no id of ours */ }
    if (!target) return;
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    if (target.hidden) clear.get(target.closest("[data-grid]"))?.();
    if (!target.matches("a, button, input, summary, [tabindex]")) target.tabIndex = -1;
    target.focus({ preventScroll: true });
    target.scrollIntoView({ block: target.tagName === "TR" ? "center" : "start" });
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) reveal();
  });
  reveal();
})();
