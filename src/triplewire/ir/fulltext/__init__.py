"""Full text (semantics, section 5): what is asked of words (`nodes`), how text becomes words (`analysis`), does a text
satisfy it (`search`)."""
