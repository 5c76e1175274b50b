// Filters the sentences. What is chosen stands in the address (#filter=differs,worse&category=idiom&search=cat),
// so that a choice can be linked to; without this script all sentences are shown.
"use strict";
(() => {
  const PAGE = 100;
  const bar = document.getElementById("filters");
  const search = document.getElementById("search");
  const order = document.getElementById("order");
  const buttons = [...bar.querySelectorAll("button[data-kind]")];
  const turns = [...document.querySelectorAll("button[data-turn]")];
  const sections = [...document.querySelectorAll("section.set")];
  const rows = sections.flatMap((section) =>
    [...section.querySelectorAll("tbody tr")].map((element) => ({
      element,
      section,
      flags: element.dataset.flags.split(" "),
      category: element.dataset.category,
      set: section.dataset.set,
      loss: element.dataset.loss === "" ? -Infinity : Number(element.dataset.loss),
      text: [...element.querySelectorAll(".name, .category, td")]
        .map((part) => part.textContent)
        .join("\n")
        .toLowerCase(),
    })),
  );

  // Kinds of choices: a sentence must have every chosen filter, but only one of the chosen sets and categories.
  let state;
  function read() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    state = {
      filter: new Set(parameters.getAll("filter").flatMap((value) => value.split(",")).filter(Boolean)),
      set: new Set(parameters.getAll("set")),
      category: new Set(parameters.getAll("category")),
      search: parameters.get("search") ?? "",
      order: order ? (parameters.get("order") ?? "") : "",
      page: Math.max(1, parseInt(parameters.get("page") ?? "1", 10) || 1),
    };
    for (const kind of ["filter", "set", "category"]) {
      const known = new Set(buttons.filter((button) => button.dataset.kind === kind).map((b) => b.dataset.value));
      state[kind] = new Set([...state[kind]].filter((value) => known.has(value)));
    }
  }

  function write() {
    const parameters = new URLSearchParams();
    if (state.filter.size) parameters.append("filter", [...state.filter].join(","));
    for (const kind of ["set", "category"]) state[kind].forEach((value) => parameters.append(kind, value));
    if (state.search) parameters.append("search", state.search);
    if (state.order) parameters.append("order", state.order);
    if (state.page > 1) parameters.append("page", state.page);
    const hash = parameters.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", location.href.split("#")[0] + (hash && "#" + hash));
  }

  /** Whether the row has what is chosen, the choices of one kind left out. */
  function matches(row, needle, except) {
    return (
      (except === "filter" || [...state.filter].every((flag) => row.flags.includes(flag))) &&
      (except === "set" || !state.set.size || state.set.has(row.set)) &&
      (except === "category" || !state.category.size || state.category.has(row.category)) &&
      row.text.includes(needle)
    );
  }

  function show() {
    const needle = state.search.toLowerCase();
    const chosen = rows.filter((row) => matches(row, needle));
    if (state.order === "loss") {
      const places = new Map(sections.map((section, index) => [section, index]));
      chosen.sort((a, b) => places.get(a.section) - places.get(b.section) || (b.loss > a.loss) - (b.loss < a.loss));
    }
    const pages = Math.max(1, Math.ceil(chosen.length / PAGE));
    state.page = Math.min(state.page, pages);
    const from = (state.page - 1) * PAGE;
    const onPage = new Set(chosen.slice(from, from + PAGE));
    const found = new Set(chosen);

    // Rows that are not chosen go to the end of their tables, where they are hidden.
    const inOrder = state.order === "loss" ? [...chosen, ...rows.filter((row) => !found.has(row))] : rows;
    const moved = inOrder.some((row, index) => row !== shown[index]);
    for (const row of inOrder) {
      if (moved) row.element.parentNode.append(row.element);
      row.element.hidden = !found.has(row);
      row.element.classList.toggle("later", found.has(row) && !onPage.has(row));
    }
    shown = inOrder;
    for (const section of sections) {
      const any = chosen.some((row) => row.section === section);
      const here = [...onPage].some((row) => row.section === section);
      section.hidden = !any && section.querySelector("tbody") !== null;
      section.classList.toggle("later", any && !here);
    }

    for (const button of buttons) {
      const { kind, value } = button.dataset;
      button.setAttribute("aria-pressed", String(state[kind].has(value)));
      const count =
        kind === "filter"
          ? chosen.filter((row) => row.flags.includes(value)).length
          : rows.filter((row) => row[kind] === value && matches(row, needle, kind)).length;
      button.querySelector(".count").textContent = count.toLocaleString("en");
    }
    if (search.value !== state.search) search.value = state.search;
    if (order) order.value = state.order;
    const range = pages > 1 ? `${(from + 1).toLocaleString("en")}–${(from + onPage.size).toLocaleString("en")} of ` : "";
    document.getElementById("status").textContent =
      `${range}${chosen.length.toLocaleString("en")} ${chosen.length === 1 ? "sentence" : "sentences"}`;
    document.getElementById("none").hidden = chosen.length > 0;
    document.getElementById("bottom").hidden = pages === 1;
    document.getElementById("clear").disabled = !(
      state.filter.size || state.set.size || state.category.size || state.search || state.order
    );
    for (const turn of turns) {
      turn.parentNode.hidden = pages === 1;
      turn.disabled = turn.dataset.turn === "1" ? state.page === pages : state.page === 1;
    }
  }
  let shown = rows;

  function change(page = 1) {
    state.page = page;
    show();
    write();
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      const { kind, value } = button.dataset;
      if (!state[kind].delete(value)) state[kind].add(value);
      change();
    });
  }
  search.addEventListener("input", () => {
    state.search = search.value;
    change();
  });
  order?.addEventListener("change", () => {
    state.order = order.value;
    change();
  });
  document.getElementById("clear").addEventListener("click", () => {
    for (const kind of ["filter", "set", "category"]) state[kind].clear();
    state.search = state.order = "";
    change();
  });
  for (const turn of turns) {
    turn.addEventListener("click", () => {
      change(state.page + Number(turn.dataset.turn));
      document.getElementById("sentences").scrollIntoView();
    });
  }
  // The bar stays in sight where it leaves room enough, and the headings of the tables below it.
  function stick() {
    const sticks = bar.offsetHeight < innerHeight / 4;
    bar.classList.toggle("sticks", sticks);
    document.documentElement.style.setProperty("--bar", sticks ? `${bar.offsetHeight}px` : "0px");
  }
  new ResizeObserver(stick).observe(bar);
  window.addEventListener("resize", stick);

  function follow() {
    // An address such as #charts is a place on the page and leaves the choice as it is.
    if (state && location.hash && !location.hash.includes("=")) return;
    read();
    show();
    if (location.hash.includes("=")) document.getElementById("sentences").scrollIntoView();
  }
  window.addEventListener("hashchange", follow);
  bar.hidden = false;
  follow();
})();
