// A page that is opened as a file may start no worker: here a hidden frame searches in place of one.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(source) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.loaded = new Promise((resolve) => {
        frame.onload = () => {
          const inside = frame.contentWindow;
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          script.src = source;
          script.onload = () => resolve(inside);
          inside.document.head.append(script);
        };
      });
      frame.srcdoc = "<!doctype html>";
      document.body.append(frame);
    }

    postMessage(data) {
      this.loaded.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
