"""Which region of each stage is computed: messages along relations, from consumers to producers."""
