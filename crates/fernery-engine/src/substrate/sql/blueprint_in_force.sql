SELECT b.document, b.blueprint FROM azollas a JOIN blueprints b ON b.blueprint = a.blueprint WHERE a.azolla_id = $1;
