"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

  // Theme: the reader's own choice, else the system's.
  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const showTheme = () => theme.setAttribute("aria-pressed", String(isDark()));
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  system.addEventListener("change", showTheme);
  showTheme();
  theme.hidden = false;

  // The numbers as a file: the same JSON that the page was made from.
  const download = document.getElementById("download");
  const json = document.getElementById("study").textContent;
  download.href = URL.createObjectURL(new Blob([json], { type: "application/json" }));
  download.hidden = false;

  // A table that is wider than its box says so above it.
  const sideways = () => {
    for (const note of all(".sideways")) {
      const box = note.nextElementSibling;
      note.hidden = box.scrollWidth <= box.clientWidth + 1;
    }
  };
  addEventListener("resize", sideways);
  document.addEventListener("toggle", sideways, true);
  sideways();

  // A mark shows its numbers while it is pointed at or focused, or after a tap; Escape closes them.
  const tip = document.getElementById("tip");
  let shown = null;
  let leaving = 0;
  const markOf = (target) => (target instanceof Element ? target.closest(".mark") : null);
  const hide = () => {
    clearTimeout(leaving);
    tip.hidden = true;
    shown = null;
  };
  const show = (mark) => {
    clearTimeout(leaving);
    if (mark === shown) return;
    shown = mark;
    tip.replaceChildren(
      ...mark.getAttribute("aria-label").split("; ").map((line) => {
        const row = document.createElement("div");
        row.textContent = line;
        return row;
      }),
    );
    tip.hidden = false;
    tip.style.left = "0";
    tip.style.top = "0";
    const box = mark.getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const room = root.clientWidth - size.width - 8;
    let left = box.left + box.width / 2 - size.width / 2;
    let top = box.top - size.height - 8;
    if (top < 4 && box.bottom > 0) {
      // No room above: stand beside the mark, or at least in sight.
      left = box.right + 8 <= room ? box.right + 8 : box.left - size.width - 8;
      top = Math.max(4, box.top);
    }
    tip.style.left = `${Math.max(8, Math.min(left, room)) + scrollX}px`;
    tip.style.top = `${top + scrollY}px`;
  };
  // A moment's grace lets the pointer reach the tooltip itself.
  const leave = () => {
    clearTimeout(leaving);
    leaving = setTimeout(hide, 150);
  };
  document.addEventListener("pointerover", (event) => {
    const mark = markOf(event.target);
    if (mark) show(mark);
    else if (tip.contains(event.target)) clearTimeout(leaving);
    else if (shown && shown !== document.activeElement) leave();
  });
  document.addEventListener("focusin", (event) => {
    const mark = markOf(event.target);
    if (mark) show(mark);
    else hide();
  });
  document.addEventListener("focusout", (event) => {
    if (markOf(event.target)) leave();
  });
  document.addEventListener("click", (event) => {
    const mark = markOf(event.target);
    if (mark) show(mark);
    else if (!tip.contains(event.target)) hide();
  });
  addEventListener("resize", hide);

  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const mark = markOf(event.target);
    if (!mark || !(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const marks = all(".mark", mark.closest("svg"));
    const place = Math.max(0, Math.min(marks.length - 1, marks.indexOf(mark) + steps[event.key]));
    marks.forEach((other, index) => other.setAttribute("tabindex", index === place ? "0" : "-1"));
    marks[place].focus();
  });

  // Tables that can be sorted by any column, and show their first rows until all are asked for.
  const number = (cell) => {
    const exact = (cell.dataset.value === undefined ? cell.querySelector("[data-value]") : cell).dataset.value;
    return Number(exact === "null" ? NaN : exact);
  };
  const compare = (column, sign) => (a, b) => {
    const [x, y] = [a.cells[column], b.cells[column]];
    if (!column) return sign * x.textContent.localeCompare(y.textContent, undefined, { numeric: true });
    const [p, q] = [number(x), number(y)];
    if (Number.isNaN(p) || Number.isNaN(q)) return Number.isNaN(p) - Number.isNaN(q);
    return p === q ? 0 : sign * (p < q ? -1 : 1);
  };
  for (const table of all("table[data-sortable]")) {
    const body = table.tBodies[0];
    const limit = Number(table.dataset.limit);
    const total = body.rows.length;
    let whole = total <= limit;
    const button = document.createElement("button");
    const fold = () => {
      [...body.rows].forEach((row, index) => (row.hidden = !whole && index >= limit));
      button.textContent = whole ? `Show the first ${limit} only` : `Show all ${total.toLocaleString("en")} classes`;
      button.setAttribute("aria-expanded", String(whole));
    };
    if (!whole) {
      button.type = "button";
      button.className = "more";
      button.addEventListener("click", () => {
        whole = !whole;
        fold();
      });
      table.parentElement.after(button);
      fold();
    }
    const heads = all("th[data-column]", table);
    for (const head of heads) {
      const sorter = document.createElement("button");
      sorter.type = "button";
      sorter.append(...head.childNodes);
      head.append(sorter);
      if (!head.hasAttribute("aria-sort")) head.setAttribute("aria-sort", "none");
      sorter.addEventListener("click", () => {
        const column = Number(head.dataset.column);
        // Numbers start with the largest, names with the first.
        const first = column ? "descending" : "ascending";
        const second = column ? "ascending" : "descending";
        const order = head.getAttribute("aria-sort") === first ? second : first;
        heads.forEach((other) => other.setAttribute("aria-sort", other === head ? order : "none"));
        body.append(...[...body.rows].sort(compare(column, order === "ascending" ? 1 : -1)));
        fold();
      });
    }
  }

  // A table wider than its box says that it scrolls.
  const hints = all(".scroll").map((box) => {
    const hint = document.createElement("p");
    hint.className = "scroll-hint";
    hint.textContent = "Scroll sideways to see all columns.";
    hint.hidden = true;
    box.after(hint);
    return () => (hint.hidden = box.scrollWidth <= box.clientWidth + 1);
  });
  const showHints = () => hints.forEach((update) => update());
  addEventListener("resize", showHints);
  document.addEventListener("toggle", showHints, true);
  showHints();

  // Paper cannot be clicked: everything that is folded is printed open.
  let closed = [];
  addEventListener("beforeprint", () => {
    hide();
    closed = all("details:not([open])");
    closed.forEach((element) => (element.open = true));
  });
  addEventListener("afterprint", () => closed.forEach((element) => (element.open = false)));
})();
