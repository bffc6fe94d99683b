"""How far streams have come: arrivals at a source, late tuples, low-water marks, enabling timestamps."""
