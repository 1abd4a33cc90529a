// The theme puts a <nav> with a copy button into each block of code, which gets a name, as landmarks of a page must have. Code
// and tables that scroll to the side can be scrolled with the keyboard.
document$.subscribe(() => {
  const nameCode = () =>
    document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav) => {
      const number = [...document.querySelectorAll("pre")].indexOf(nav.closest("pre")) + 1;
      nav.setAttribute("aria-label", `Code block ${number}`);
    });
  const name = () => {
    nameCode();
    const scroll = ".md-typeset__scrollwrap:not([tabindex]), pre > code:not([tabindex])";
    document.querySelectorAll(scroll).forEach((part) => part.setAttribute("tabindex", "0"));
  };
  name();
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
});
