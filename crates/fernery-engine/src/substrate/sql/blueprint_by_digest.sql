SELECT document, blueprint FROM blueprints WHERE blueprint = $1;
