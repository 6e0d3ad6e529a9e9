SELECT document FROM blueprints WHERE blueprint = $1;
